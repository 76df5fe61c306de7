"""What a repository's URL or path means."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from moorage.errors import InvalidArgument

LOCAL: Final = "file"
"""The scheme of the local file system."""

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
"""At least two letters, so that a Windows drive (C:/models) is none."""
_CHAINED: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)::")
"""As in `zip::/srv/models.zip`."""
_SIGNED: Final = re.compile(r"[?&](sig|signature|x-amz-signature|x-goog-signature)=", re.IGNORECASE)
"""What is as good as a password."""
_DRIVE: Final = re.compile(r"/[A-Za-z]:(/|$)")


class Location(NamedTuple):
    """A repository: the scheme that says which storage reads it, and the URL as the storage gets it."""

    scheme: str
    url: str


def split(url: str) -> Location:
    """The scheme (lower case) and the URL without needless slashes at its end. A path without a scheme is local.
    What stands before another URL, as `zip::` does, is the scheme.

    Raises InvalidArgument for an empty URL, one with nothing behind its scheme, and one that holds a signature.
    """
    if not url.strip() or "\0" in url:
        raise InvalidArgument("a model repository must be a path or a URL, not empty")
    if chained := _CHAINED.match(url):
        url = f"{chained[1]}://{url[chained.end(1) :]}"
    match = _SCHEME.match(url)
    if match is None:
        return Location(LOCAL, _trimmed(url))
    if not url[match.end() :].strip():
        raise InvalidArgument(f"model repository '{url}' names nothing behind '{match[0]}'")
    if _SIGNED.search(url):
        raise InvalidArgument(
            f"model repository '{url.partition('?')[0]}': remove the '?' and what follows; a signature in a URL would get into "
            "logs, so credentials come from the environment (a SAS token of Azure's in AZURE_STORAGE_SAS_TOKEN)"
        )
    scheme = match[1].lower()
    return Location(scheme, f"{scheme}://{_trimmed(url[match.end() :])}")


def local_path(url: str) -> Path:
    """The path that a local URL (`file://…`) or a bare path means. Raises InvalidArgument for a file URL of another machine."""
    match = _SCHEME.match(url)
    if match is None:
        return Path(url)
    host, slash, rest = url[match.end() :].partition("/")
    if host not in ("", "localhost") or not slash:
        raise InvalidArgument(
            f"model repository '{url}': a file URL needs three slashes and a full path, as in file:///srv/models"
        )
    path = "/" + unquote(rest)
    return Path(path[1:] if _DRIVE.match(path) else path)


def _trimmed(path: str) -> str:
    """Without slashes at the end, unless it is nothing but slashes or a drive's root."""
    bare = path.rstrip("/")
    return path if not bare or bare.endswith(":") else bare
