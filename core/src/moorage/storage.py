"""What a storage scheme must offer: one listing, reads and downloads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

UNREADABLE: Final = "unreadable: "
"""How the fingerprint begins of an entry that is there but cannot be read; the reason follows."""


class Entry(NamedTuple):
    """One file or folder below a repository's root.

    `path` is relative to the root, with forward slashes and no leading one. `fingerprint` changes whenever the content
    does (an ETag, a generation, or size + mtime + inode); folders have none. Stores without folders list files alone. A
    folder or file
    below the root that may not be read is listed with a fingerprint that begins with `UNREADABLE`: it stops nothing but its
    model.
    """

    path: str
    size: int
    fingerprint: str
    is_dir: bool = False


class Storage(ABC):
    """Read access to model repositories under the URLs of some schemes.

    Methods block and are called on worker threads, possibly at the same time. They raise `StorageError` with what happened
    and the next step; an error must never look like an empty listing.
    """

    schemes: ClassVar[Sequence[str]]
    """URL schemes served, lower case, without "://". The local file system is "file"; a bare path means it."""

    @abstractmethod
    def list(self, url: str) -> tuple[Entry, ...]:
        """Everything below `url`, in one listing, in no promised order. Raises StorageError if `url` does not exist."""

    @abstractmethod
    def read(self, url: str, path: str) -> bytes:
        """The content of the file at `path` (relative to `url`)."""

    @abstractmethod
    def download(self, url: str, paths: Sequence[str], target: Path) -> None:
        """Bring files (relative to `url`) to the same relative paths below the existing folder `target`."""


class InPlaceStorage(Storage):
    """A storage whose files are already on this machine, so that models are read where they are."""

    @abstractmethod
    def local_path(self, url: str) -> Path:
        """The folder that `url` means."""
