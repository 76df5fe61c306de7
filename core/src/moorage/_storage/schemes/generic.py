"""Any file system of fsspec's as a storage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from fsspec.asyn import AsyncFileSystem
from fsspec.core import url_to_fs
from fsspec.spec import AbstractFileSystem

from moorage.errors import InvalidArgument, StorageError, told
from moorage.storage import Entry
from moorage.storage.fsspec import FsspecStorage, Info, Place

logger = logging.getLogger(__name__)

PIECE: Final = 1 << 20
"""Bytes that are read and written at once."""
DEPTH: Final = 64
"""Folders in folders of a repository."""


class GenericStorage(FsspecStorage):
    """Serves one scheme that fsspec knows, with what fsspec makes of the URL and of its own configuration (FSSPEC_…).

    Files are read from their beginning to their end, since many file systems can do no more. File systems that are not
    asynchronous may not be used on two threads at once: they wait for each other.
    """

    schemes: ClassVar[Sequence[str]] = ()
    chunk: ClassVar[int] = 1 << 62
    threads: ClassVar[int] = 1
    fingerprint_fields: ClassVar[Sequence[str]] = (
        *FsspecStorage.fingerprint_fields,
        "CRC",
        "Last-Modified",
        "modified",
        "modificationTime",
        "modify",
        "updated",
        "sha",
        "hex",
        "blob_id",
    )

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.RLock()
        self._doubtful: set[str] = set()

    def connect(self, url: str) -> Place:
        refuse_password(url)
        filesystem, root = url_to_fs(url, skip_instance_cache=True)  # more options would go to SSH clients and the like
        return Place(filesystem, root or filesystem.root_marker)

    def list(self, url: str) -> tuple[Entry, ...]:
        with self._alone(self.place(url)):
            entries = super().list(url)
        if url not in self._doubtful and any(entry.fingerprint == str(entry.size) for entry in entries):
            self._doubtful.add(url)
            logger.warning("model repository %s: only sizes can be seen; a change that keeps them goes unnoticed", url)
        return entries

    def read(self, url: str, path: str) -> bytes:
        with self._alone(self.place(url)):
            return super().read(url, path)

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        alone = partial(self._alone, place)
        with alone():
            file = place.filesystem.open(self.name(place, entry.path), "rb")
            file.seek(start)
        try:
            while start < end:
                with alone():
                    piece = file.read(min(PIECE, end - start))
                if not piece:
                    raise shorter(entry)
                start += len(piece)
                yield piece
        finally:
            with alone():
                file.close()

    def found(self, place: Place) -> Mapping[str, Info]:
        place.filesystem.invalidate_cache()
        found = crawl(place) if _walks(place.filesystem) else super().found(place)
        return {name: info if info.get("size") is not None else place.filesystem.info(name) for name, info in found.items()}

    def explain(self, error: Exception, url: str) -> str:
        return told(error) if isinstance(error, ImportError) else ""

    def _alone(self, place: Place) -> AbstractContextManager[object]:
        return nullcontext() if place.filesystem.async_impl else self._turn


def crawl(place: Place) -> dict[str, Info]:
    """What is below a place, folder by folder. Unlike fsspec's own walk, it does not take folders that fail for empty ones."""
    found: dict[str, Info] = {}
    root = place.root.rstrip("/")
    folders = [root or place.root]
    while folders:
        folder = folders.pop()
        if folder.count("/") - root.count("/") > DEPTH:
            raise StorageError(f"{folder}: folders are nested more than {DEPTH} deep; does a link lead back?")
        for name, info in _listed(place.filesystem, folder):
            if info["type"] != "directory":
                found[name] = info
            elif name.rstrip("/") != folder.rstrip("/"):
                folders.append(name)
    return found


def _listed(filesystem: Any, folder: str) -> Iterator[tuple[str, Info]]:
    for info in filesystem.ls(folder, detail=True):
        name = info["name"]
        if info["type"] in ("file", "directory"):
            yield name, info
            continue
        try:
            yield name, {**filesystem.info(name), "name": name}
        except FileNotFoundError:
            continue  # a link to nowhere


def _walks(filesystem: Any) -> bool:
    """Whether the file system lists folder by folder, with what fsspec has for all."""
    own = type(filesystem)
    if filesystem.async_impl:
        return bool(own._find is AsyncFileSystem._find)
    return bool(own.find is AbstractFileSystem.find)


def shorter(entry: Entry) -> StorageError:
    """A file has ended too early."""
    return StorageError(f"'{entry.path}' has changed: it is shorter than it was listed; the load can be tried again")


def refuse_password(url: str) -> None:
    """Raises InvalidArgument for a URL with a password, without showing it."""
    parts = urlsplit(url)
    if parts.password is None or parts.scheme in ("git", "github"):
        return
    shown = parts._replace(netloc=f"{parts.username}@{parts.netloc.rpartition('@')[2]}").geturl()
    raise InvalidArgument(
        f"the URL of model repository {shown} holds a password, which logs would show: leave it out and set "
        f"FSSPEC_{parts.scheme.upper()}_PASSWORD, or what the file system takes instead, in the environment"
    )
