"""Storage over fsspec: what is the same for every store. A plugin adds its URLs, credentials, fingerprints and errors."""

from __future__ import annotations

import logging
import threading
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from attrs import frozen

from moorage.errors import MoorageError, StorageError, described
from moorage.storage.base import Entry, Progress, Storage, unseen
from moorage.storage.transfer import CHUNK, DIGESTS, THREADS, Digests, Source, Transfer, persistently

logger = logging.getLogger(__name__)

Info = Mapping[str, Any]
"""What fsspec tells of a file: "name", "size", "type", and what the store adds."""


@frozen(eq=False)
class Place:
    """Where a URL leads: a file system of fsspec's, and a folder in it ("bucket/models", without a slash at its end)."""

    filesystem: Any
    root: str
    container: str = ""
    """What must exist for an empty listing to be believed ("bucket"); empty if the root itself must."""


class FsspecStorage(Storage):
    """Lists, reads and downloads through a file system of fsspec's. One object for all URLs of its schemes.

    File systems are made without fsspec's caches: each `list` asks the store.
    """

    fingerprint_fields: ClassVar[Sequence[str]] = (
        "ETag",
        "etag",
        "generation",
        "mtime",
        "created",
        "LastModified",
        "last_modified",
    )
    """Fields of a file's info that are part of its fingerprint, beside its size, as far as they are there."""

    digests: ClassVar[Digests] = DIGESTS
    """What computes the kinds of check sums that the store tells; files whose kind is not here are listed once more instead."""

    chunk: ClassVar[int] = CHUNK
    """Bytes of a file that `pieces` is asked for at once. A store whose pieces are small can take more."""

    threads: ClassVar[int] = THREADS
    """How many files or parts of files are on their way at once."""

    exact: ClassVar[bool] = False
    """`pieces` raises unless the content is the one that was listed (by a condition on its ETag or generation)."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._lock = threading.RLock()
        self._told: set[tuple[str, str]] = set()

    @abstractmethod
    def connect(self, url: str) -> Place:
        """Understand a URL and choose the credentials. Called once for each URL; asks nothing of the store if it can.

        Pass `skip_instance_cache=True, use_listings_cache=False` to the file system. Raises InvalidArgument for a URL that
        cannot be meant, saying what was understood and what to write, and StorageError for credentials that cannot be read.
        """

    def explain(self, error: Exception, url: str) -> str:
        """What an error of the store means, and the next step, without any secret; empty for one that is not known."""
        return ""

    def transient(self, error: Exception) -> bool:
        """Whether the same call may well work when it is tried again."""
        return isinstance(error, ConnectionError | TimeoutError)

    def outdated(self, error: Exception) -> bool:
        """Whether it may help to connect anew, because credentials are used up and others may have taken their place."""
        return False

    def fingerprint(self, info: Info) -> str:
        """Changes whenever the content of the file does, and never otherwise as far as the store can tell."""
        return "-".join(str(info[name]).strip('"') for name in ("size", *self.fingerprint_fields) if info.get(name) is not None)

    def checksum(self, info: Info) -> str:
        """What the store says of the content: "md5:…" or "crc32c:…", hexadecimal; empty if it says nothing."""
        return ""

    def list(self, url: str) -> tuple[Entry, ...]:
        place = self.place(url)
        with self._explained(url):
            found = persistently(lambda: self.found(place), self.transient)
            if not found:
                self.confirm(place)
        if [*found] == [place.root]:
            raise StorageError(f"model repository {url} is a file: give the folder that holds the models' folders")
        entries = tuple(self._entries(url, place, found))
        if not entries:
            self._tell(url, "", "nothing lies below this path; no models are served from it")
        return entries

    def read(self, url: str, path: str) -> bytes:
        place = self.place(url)
        with self._explained(url, path):
            return bytes(persistently(lambda: place.filesystem.cat_file(self.name(place, path)), self.transient))

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        place = self.place(url)

        def look() -> Mapping[str, str]:
            return {entry.path: entry.fingerprint for entry in self.list(url)}

        source = Source(
            fetch=partial(self.pieces, place),
            look=look,
            transient=self.transient,
            digests=self.digests,
            exact=self.exact,
            chunk=self.chunk,
            explained=partial(self._explained, url),
            threads=self.threads,
        )
        with self._explained(url):
            Transfer(source, target, progress).bring(entries)

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        """The bytes of a listed file from `start` to before `end`, in pieces that are written as they come.

        May end early; the rest is then asked for.
        """
        yield bytes(place.filesystem.cat_file(self.name(place, entry.path), start=start, end=end))

    def place(self, url: str) -> Place:
        """Where the URL leads; connects at the first call. Raises as `connect` does."""
        with self._lock:
            found = self._places.get(url)
            if found is None:
                with self._explained(url):
                    found = self._places[url] = self.connect(url)
            return found

    def forget(self, url: str) -> None:
        """Connect anew at the next call, for instance because the credentials are used up."""
        with self._lock:
            self._places.pop(url, None)

    def found(self, place: Place) -> Mapping[str, Info]:
        """The files below a place: their names in the store to what it says of them. One listing."""
        found: Mapping[str, Info] = place.filesystem.find(place.root, detail=True)
        return found

    def name(self, place: Place, path: str) -> str:
        """What the file at a path below a place is called in the store."""
        return f"{place.root.rstrip('/')}/{path}" if place.root else path

    def confirm(self, place: Place) -> None:
        """Raises FileNotFoundError (or what the store raises) unless the place exists, of which a listing has shown nothing."""
        place.filesystem.ls(place.container or place.root, detail=False)

    def _entries(self, url: str, place: Place, found: Mapping[str, Info]) -> Iterator[Entry]:
        prefix = f"{place.root}/" if place.root and not place.root.endswith("/") else place.root
        folders = _folders(found)
        for name, info in found.items():
            path, size = name.removeprefix(prefix), int(info.get("size") or 0)
            if info.get("type") == "directory" or path.endswith("/") or not path or path == place.root:
                continue  # markers, by which consoles show folders
            if not name.startswith(prefix) or any(part in ("", ".", "..") for part in path.split("/")):
                self._skip(url, path, "its path has an empty or relative part")
            elif name not in folders:
                yield Entry(path, size, self.fingerprint(info), checksum=self.checksum(info))
            elif size:
                self._skip(url, path, "there are files below it, so that it would have to be a file and a folder")

    def _skip(self, url: str, path: str, reason: str) -> None:
        """An object can be no file."""
        self._tell(url, path, f"'{path}' was skipped, {reason}")

    def _tell(self, url: str, path: str, text: str) -> None:
        """Warn of something once."""
        if (url, path) not in self._told:
            self._told.add((url, path))
            logger.warning("model repository %s: %s", url, text)

    @contextmanager
    def _explained(self, url: str, path: str = "") -> Iterator[None]:
        where = f"model repository {url}" + (f", file {path}" if path else "")
        try:
            yield
        except MoorageError:
            raise
        except Exception as error:
            if self.outdated(error):
                self.forget(url)
            told = self.explain(error, url) or _usual(error) or described(error)
            raise StorageError(f"{where}: {told}") from error


def _folders(names: Iterable[str]) -> set[str]:
    """What the names lie in, up to the top."""
    folders: set[str] = set()
    for name in names:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return folders


def _usual(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "it does not exist: create it or correct the URL"
    if isinstance(error, PermissionError):
        return "access was refused: check the credentials and what they allow (listing and reading)"
    return ""
