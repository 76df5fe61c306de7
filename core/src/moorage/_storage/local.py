"""Repositories on the local file system."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Final

from moorage._storage.urls import LOCAL, local_path
from moorage.errors import StorageError
from moorage.storage import UNREADABLE, Entry, InPlaceStorage, Progress, unseen


class LocalStorage(InPlaceStorage):
    """Reads models where they lie. Symbolic links are followed."""

    schemes: ClassVar[Sequence[str]] = (LOCAL,)

    def list(self, url: str) -> tuple[Entry, ...]:
        root = self.local_path(url)
        found: list[Entry] = []
        try:
            folders = _scan(str(root), "", (), found)
        except OSError as error:
            raise _unlistable(root, error) from error
        while folders:
            path, prefix, links = folders.pop()
            try:
                folders += _scan(path, prefix, links, found)
            except FileNotFoundError:
                continue  # deleted since its parent was read
            except OSError as error:
                found.append(Entry(prefix[:-1], 0, f"{UNREADABLE}{error.strerror}", is_dir=True))
        return tuple(found)

    def read(self, url: str, path: str) -> bytes:
        file = self.local_path(url) / path
        try:
            return file.read_bytes()
        except OSError as error:
            raise StorageError(f"cannot read {file}: {error.strerror}") from error

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        root = self.local_path(url)
        for entry in entries:
            copy = target / entry.path
            try:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / entry.path, copy)
                now = _file(entry.path, (root / entry.path).stat())
            except OSError as error:
                raise StorageError(f"cannot copy {root / entry.path} to {copy}: {error.strerror}") from error
            if now.fingerprint != entry.fingerprint:
                raise StorageError(f"{root / entry.path} has changed since it was listed; the load can be tried again")
            progress(entry.size)

    def local_path(self, url: str) -> Path:
        return local_path(url)


_GONE: Final = (errno.ENOENT, errno.ELOOP)
"""What is not there: a file deleted just now, a link to nowhere, a link to itself."""

_ENDLESS: Final = ((stat.S_ISFIFO, "a named pipe"), (stat.S_ISCHR, "a device"), (stat.S_ISBLK, "a device"))

_Folder = tuple[str, str, tuple[str, ...]]
"""A folder still to be read: its path, the prefix of its entries, and the real folders that hold the links on the way to it."""


def _scan(path: str, prefix: str, links: tuple[str, ...], found: list[Entry]) -> list[_Folder]:
    """Read one folder: its entries go to `found`, its sub-folders are returned. Fast: one `stat` a file, none a folder."""
    folders: list[_Folder] = []
    with os.scandir(path) as entries:
        for entry in entries:
            if not entry.name.isascii() and not _is_text(entry.name):
                found += [] if prefix else [_unnameable(entry.name)]
                continue
            name = prefix + entry.name
            try:
                if entry.is_dir():
                    beyond = _follow(entry, path, links) if entry.is_symlink() else links
                    if beyond is None:
                        continue
                    folders.append((entry.path, name + "/", beyond))
                    found.append(Entry(name, 0, "", True))
                else:
                    found.append(_file(name, entry.stat()))
            except OSError as error:
                if error.errno in _GONE:
                    continue
                found.append(Entry(name, 0, f"{UNREADABLE}{error.strerror}"))
    return folders


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unnameable(name: str) -> Entry:
    """A folder or file in the root whose name no protocol can carry. Below the root such names are left out."""
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")
    return Entry(shown, 0, f"{UNREADABLE}its name is not UTF-8; rename it", is_dir=True)


def _file(path: str, status: os.stat_result) -> Entry:
    """A file of the listing. What would keep whoever opens it waiting, or never end, is listed as unreadable."""
    kind = next((called for test, called in _ENDLESS if test(status.st_mode)), None)
    if kind is not None:
        return Entry(path, 0, f"{UNREADABLE}it is {kind}, not a file")
    return Entry(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}")


def _follow(entry: os.DirEntry[str], parent: str, links: tuple[str, ...]) -> tuple[str, ...] | None:
    """The chain of folders with links, one longer; None if the link leads back to a folder that holds a link of the chain."""
    target = os.path.realpath(entry.path)
    chain = (*links, os.path.realpath(parent))
    inside = (folder == target or folder.startswith(target.rstrip(os.sep) + os.sep) for folder in chain)
    return None if any(inside) else chain


def _unlistable(root: Path, error: OSError) -> StorageError:
    if isinstance(error, FileNotFoundError):
        return StorageError(f"model repository {root} does not exist (seen from {Path.cwd()}): create it or correct the path")
    if isinstance(error, NotADirectoryError):
        return StorageError(f"model repository {root} is a file: give the folder that holds the models' folders")
    if isinstance(error, PermissionError):
        return StorageError(f"model repository {root} may not be read by this user: permission denied")
    return StorageError(f"cannot list model repository {root}: {error.strerror}")
