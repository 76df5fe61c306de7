"""What an S3 URL means: a server, a bucket, and where in it the models are."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from moorage.errors import InvalidArgument

_FORMS: Final = "write s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH or s3://https://HOST/BUCKET/PATH"

_SERVER: Final = re.compile(r"(?P<scheme>https?)://(?P<host>[^/]*)/*(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_ADDRESS: Final = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^\s\[\]:/@?#\\%]+)(:(?P<port>\d+))?")
_WITH_PORT: Final = re.compile(r"\[.*\](:\d+)?|[^:]*:\d+")
_BUCKET: Final = re.compile(r"[A-Za-z0-9._-]{1,255}")
_ACCESS_POINT: Final = re.compile(r"(?P<bucket>arn:[^/:]+:s3[a-z-]*:[^/]*:[^/]*:accesspoint[:/][^/]+)/*(?P<path>.*)", re.DOTALL)


@frozen
class S3Url:
    """`bucket` may be the ARN of an access point. `prefix` is the repository's path in it, without slashes at its ends."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    """The server, as in "http://store.example:9000"; empty if the URL names none."""

    @property
    def names(self) -> tuple[str, ...]:
        """The forms of the URL under which credentials may be kept for it."""
        path = f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket
        if not self.endpoint:
            return (f"s3://{path}",)
        return tuple(f"s3://{server}/{path}" for server in (self.endpoint, self.endpoint.removeprefix("http://")))


def parse(url: str) -> S3Url:
    """Understand `s3://bucket/path`, `s3://host:port/bucket/path`, `s3://https://host/bucket/path`.

    A first part with a port is a server, reached by HTTP; without one it is a bucket. Slashes in a row count as one. Nothing
    is percent-decoded. Raises InvalidArgument that says what was understood and what to write.
    """
    rest = re.sub("^s3://", "", url, flags=re.IGNORECASE)
    server = _SERVER.match(rest)
    if server:
        return _on_server(url, f"{server['scheme'].lower()}://", server["host"], server["path"])
    rest = rest.lstrip("/")
    first, _, path = rest.partition("/")
    if _WITH_PORT.fullmatch(first):
        return _on_server(url, "http://", first, path)
    point = _ACCESS_POINT.fullmatch(rest)
    if point:
        return S3Url(point["bucket"], _clean(point["path"]))
    return S3Url(_bucket(url, first), _clean(path))


def _on_server(url: str, scheme: str, host: str, rest: str) -> S3Url:
    if "@" in host:
        raise InvalidArgument(
            "an S3 URL holds a user name or a password before '@', where none are read: take them out and set "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    address = _ADDRESS.fullmatch(host)
    if not address or int(address["port"] or 1) not in range(1, 65536):
        raise InvalidArgument(f"model repository '{url}': '{host}' is not the address of a server; {_FORMS}")
    bucket, _, path = rest.lstrip("/").partition("/")
    if not bucket:
        raise InvalidArgument(f"model repository '{url}' names the server {scheme}{host} but no bucket on it; {_FORMS}")
    return S3Url(_bucket(url, bucket), _clean(path), scheme + host)


def _bucket(url: str, name: str) -> str:
    if not _BUCKET.fullmatch(name):
        raise InvalidArgument(
            f"model repository '{url}': '{name}' is understood as a bucket but cannot be the name of one; {_FORMS}"
        )
    return name


def _clean(path: str) -> str:
    return "/".join(part for part in path.split("/") if part)
