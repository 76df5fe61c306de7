"""Repositories that a web server shows as pages of links, such as the listings of nginx or of `python -m http.server`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any, ClassVar, Final
from urllib.parse import quote, unquote

import aiohttp
from attrs import frozen
from fsspec import filesystem
from fsspec.config import conf

from moorage._storage.schemes.generic import PIECE, GenericStorage, crawl, refuse_password, shorter
from moorage.errors import StorageError
from moorage.storage import Entry
from moorage.storage.fsspec import Info, Place

_TITLES: Final = (b"index of", b"directory listing", b"directory: ")
"""What the pages of listings say, in small letters."""
_STRANGE: Final = re.compile(r"^[a-z]+:|[?#]|(^|/)\.\.(/|$)|//")
"""Links that lead to no file below the page: to programs, to other orders of the page, up."""
_HEADS: Final = 8
"""Files that are asked about at once."""


class WebStorage(GenericStorage):
    """Follows the links of the pages below a URL, and asks for the size and the date of each file that they lead to."""

    schemes: ClassVar[Sequence[str]] = ("http", "https")
    threads: ClassVar[int] = 4

    def connect(self, url: str) -> Place:
        refuse_password(url)
        own = conf.get("http", {}) | conf.get("https", {})
        client = {"timeout": aiohttp.ClientTimeout(total=None, sock_connect=20, sock_read=60), "trust_env": True}
        options = {"client_kwargs": client | own.get("client_kwargs", {}), "simple_links": False}
        opened = filesystem("http", skip_instance_cache=True, **options)
        return Place(opened, quote(url, safe="%/:@!$&'()*+,;=~[]"))

    def found(self, place: Place) -> Mapping[str, Info]:
        names = list(crawl(Place(_Pages(place.filesystem), place.root)))
        with ThreadPoolExecutor(_HEADS, thread_name_prefix="moorage-head") as threads:
            told = list(threads.map(place.filesystem.info, names))
        root = place.root.rstrip("/")
        return {root + unquote(info["name"].removeprefix(root)): {**info, "type": "file"} for info in told}

    def confirm(self, place: Place) -> None:
        page = place.filesystem.cat_file(place.root + "/").lower()
        if not any(title in page for title in _TITLES):
            raise StorageError(
                f"the page at {place.root}/ is no listing of files: a web server must show the folder's files as links"
            )

    def name(self, place: Place, path: str) -> str:
        return super().name(place, quote(path))

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        opened = place.filesystem
        headers = {**opened.kwargs.get("headers", {}), "Accept-Encoding": "identity", "Range": f"bytes={start}-"}
        with opened.open(self.name(place, entry.path), "rb", block_size=0, size=1, headers=headers) as stream:
            again = start if stream.r.status != 206 else 0  # bytes that are sent once more by a server without ranges
            while start < end and (piece := stream.read(PIECE)):
                again, piece = max(0, again - len(piece)), piece[again : again + end - start]
                start += len(piece)
                yield piece
        if start < end:
            raise shorter(entry)

    def explain(self, error: Exception, url: str) -> str:
        cause = error.__cause__ if isinstance(error, FileNotFoundError) and error.__cause__ is not None else error
        if isinstance(cause, aiohttp.ClientResponseError):
            return _status(cause.status)
        if isinstance(cause, aiohttp.ClientConnectorDNSError):
            return f"there is no host '{cause.host}': correct the URL, or look at the network's name service"
        if isinstance(cause, aiohttp.ClientConnectorError):
            return f"{cause.host}:{cause.port} cannot be reached ({cause.strerror or cause}): does the server run there?"
        return super().explain(error, url)

    def transient(self, error: Exception) -> bool:
        if isinstance(error, aiohttp.ClientResponseError):
            return error.status in (408, 429) or error.status >= 500
        return isinstance(error, aiohttp.ClientError) or super().transient(error)


def _status(status: int) -> str:
    if status in (401, 403):
        return f"the server refuses access ({status}): give it what it wants to see in FSSPEC_HTTP='{{\"headers\": {{…}}}}'"
    return f"the server answers with status {status}" + (": it is at fault; try later" if status >= 500 else "")


@frozen(eq=False)
class _Pages:
    """The pages of a web server as folders."""

    server: Any

    def ls(self, folder: str, detail: bool) -> Iterator[Info]:
        for info in self.server.ls(folder, detail=detail):
            name = unescape(info["name"]).replace("/./", "/")
            link = name.removeprefix(folder.rstrip("/") + "/")
            if not _STRANGE.search(link):
                yield {**info, "name": name}
