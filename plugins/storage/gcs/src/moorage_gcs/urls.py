"""What the URL of a repository in Google Cloud Storage means."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from moorage.errors import InvalidArgument

SCHEMES: Final = ("gs", "gcs")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]")
_HOSTS: Final = ("storage.googleapis.com", "storage.cloud.google.com", "console.cloud.google.com")
_WILDCARD: Final = re.compile(r"[*\[\]]")


class Address(NamedTuple):
    """A bucket, and a folder in it without slashes around it; empty for all of the bucket."""

    bucket: str
    prefix: str

    @property
    def root(self) -> str:
        """Both, as gcsfs writes them."""
        return f"{self.bucket}/{self.prefix}" if self.prefix else self.bucket


def parse(url: str) -> Address:
    """The bucket and the folder of `gs://bucket/path`. Slashes too many do not count; nothing is taken for an escape.

    Raises InvalidArgument that says what to write.
    """
    _, _, rest = url.partition("://")
    bucket, *folders = [part for part in rest.split("/") if part] or [""]
    prefix = "/".join(folders)
    if bucket.rstrip(":").lower() in ("http", "https", *SCHEMES):
        bucket, *folders = folders or [""]
        raise _meant(url, bucket, folders)
    if bucket in _HOSTS:
        raise _meant(url, bucket, folders)
    if not _BUCKET.fullmatch(bucket):
        raise InvalidArgument(f"model repository '{url}': '{bucket}' cannot be the name of a bucket; {_advice(bucket, prefix)}")
    if _WILDCARD.search(prefix):
        raise InvalidArgument(f"model repository '{url}': wildcards mean nothing here; give the folder of the models' folders")
    return Address(bucket, prefix)


def _meant(url: str, host: str, folders: list[str]) -> InvalidArgument:
    """For a URL of a web page or of the API: the one that would do."""
    if host in _HOSTS and folders[:2] == ["storage", "browser"]:
        folders = folders[2:]
    path = "/".join(folders if host in _HOSTS else [host, *folders])
    return InvalidArgument(
        f"model repository '{url}': the address of a server has no place in it; write gs://{path or 'BUCKET/FOLDER'}"
        + ("" if host in _HOSTS else ", and give the address of an emulator in STORAGE_EMULATOR_HOST")
    )


def _advice(bucket: str, prefix: str) -> str:
    small = bucket.lower()
    if small != bucket and _BUCKET.fullmatch(small):
        return f"names of buckets have small letters: write gs://{small}{'/' if prefix else ''}{prefix}"
    if ":" in bucket:
        return "write gs://BUCKET/FOLDER, and give the address of an emulator in STORAGE_EMULATOR_HOST"
    return "write gs://BUCKET/FOLDER, the bucket in 3 or more small letters, digits, '-', '_' and '.'"
