"""The contract between the server and the places that models come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final, NamedTuple

UNREADABLE: Final = "unreadable: "
"""How the fingerprint begins of an entry that is there but cannot be read; the reason follows."""

Progress = Callable[[int], None]
"""Told of each number of bytes that have arrived, from any thread."""


def unseen(_: int) -> None:
    """Progress that nobody looks at."""


class Entry(NamedTuple):
    """One file or folder below a repository's root.

    `path` is relative to the root, with forward slashes and no leading one. `fingerprint` changes whenever the content
    does (an ETag, a generation, or size + mtime + inode); folders have none. Stores without folders list files alone. A
    folder or file below the root that may not be read is listed with a fingerprint that begins with `UNREADABLE`: it stops
    nothing but its model. `checksum` is what the store itself says of the content, "md5:" or "crc32c:" and hexadecimal
    digits; empty if it says nothing.
    """

    path: str
    size: int
    fingerprint: str
    is_dir: bool = False
    checksum: str = ""


class Storage(ABC):
    """Read access to model repositories under the URLs of some schemes.

    Methods block and are called on worker threads, possibly at the same time. They raise `StorageError` with what happened
    and the next step; an error must never look like an empty listing.
    """

    schemes: ClassVar[Sequence[str]]
    """URL schemes served, lower case, without "://". The local file system is "file"; a bare path means it."""

    mount_variable: ClassVar[str] = ""
    """The environment variable that may name an empty folder for the local copies of models, such as
    TRITON_AWS_MOUNT_DIRECTORY."""

    @abstractmethod
    def list(self, url: str) -> tuple[Entry, ...]:
        """Everything below `url`, in one listing, in no promised order. Raises StorageError if `url` does not exist."""

    @abstractmethod
    def read(self, url: str, path: str) -> bytes:
        """The content of the file at `path` (relative to `url`)."""

    @abstractmethod
    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        """Bring files that `list` has shown to the same paths below the existing folder `target`.

        Raises StorageError, also if a file is not what was listed any more. What is in `target` then is of no use.
        """

    def close(self) -> None:
        """The server ends."""
        return


class InPlaceStorage(Storage):
    """A storage whose files are already on this machine, so that models are read where they are."""

    @abstractmethod
    def local_path(self, url: str) -> Path:
        """The folder that `url` means."""
