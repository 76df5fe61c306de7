"""A private folder of one server for all that is temporary, which goes with the server, however that ends."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from pathlib import Path
from typing import Final

from attrs import frozen
from filelock import FileLock, Timeout

from moorage.errors import InvalidArgument

logger = logging.getLogger(__name__)

PREFIX: Final = "moorage-server-"
"""How the folders of servers begin."""
_LOCK: Final = ".lock"
_VOLUME: Final = "lost+found"
"""What an empty disk holds."""
_FORGOTTEN_SECONDS: Final = 3600.0
"""Age from which a lock without a folder is no server's that just starts."""


@frozen(eq=False)
class _Place:
    """The folder, and beside it the lock that is held while its server lives. No name is ever used twice."""

    folder: Path
    lock: FileLock

    def remove(self, owner: int) -> None:
        if owner != os.getpid():  # a child that was forked ends
            return
        _remove(self.folder, self.lock)


class Scratch:
    """A folder below `parent` (that for temporary files, if None is given), which only this user may enter.

    It is made at the first use, and removed by `close`, at the latest when the process ends. What a killed process has left is
    removed by the next server that calls `sweep`. Methods may be called from any thread.
    """

    def __init__(self, parent: Path | None = None) -> None:
        self.parent = parent if parent is not None else Path(tempfile.gettempdir())
        self._place: _Place | None = None
        self._remove: weakref.finalize[[int], Scratch] | None = None
        self._guard = threading.Lock()
        self._closed = False

    @property
    def path(self) -> Path:
        """The folder. Raises OSError if it cannot be made, or has been removed for good."""
        with self._guard:
            if self._closed:
                raise FileNotFoundError("the server has ended")
            if self._place is None:
                self._place = _claimed(self.parent)
                self._remove = weakref.finalize(self, self._place.remove, os.getpid())
            return self._place.folder

    def folder(self, purpose: str) -> Path:
        """A new folder in it, whose name begins with `purpose`. Raises OSError."""
        return Path(tempfile.mkdtemp(prefix=f"{purpose}-", dir=self.path))

    def close(self) -> None:
        """Remove everything."""
        with self._guard:
            self._closed = True
            if self._remove is not None:
                self._remove()

    def sweep(self) -> list[Path]:
        """Remove the folders that servers below the same parent have left behind; these folders."""
        locks = sorted(self.parent.glob(f"{PREFIX}*{_LOCK}")) if self.parent.is_dir() else []
        return [folder for lock in locks if (folder := _dead(lock)) is not None]


def mounted(variable: str, folder: str) -> Scratch:
    """One below the folder that an environment variable names, which must be there and empty.

    Raises InvalidArgument that names both.
    """
    scratch, place = Scratch(Path(folder)), f"{variable}={folder}"
    if not scratch.parent.is_dir():
        raise InvalidArgument(f"{place}: there is no such folder; create it, or take the variable away")
    scratch.sweep()
    try:
        holds = next((one for one in scratch.parent.iterdir() if one.name != _VOLUME), None)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidArgument(f"{place}: this user may not read and write it: {error.strerror}") from error
    if holds is not None:
        used = " (another server uses it)" if holds.name.startswith(PREFIX) else ""
        raise InvalidArgument(f"{place}: the folder must be empty, but holds '{holds.name}'{used}; empty it, or name another")
    return scratch


def _claimed(parent: Path) -> _Place:
    """The lock is taken before the folder is there, so that nobody ever sees a folder of a living server without its lock."""
    folder = parent / f"{PREFIX}{secrets.token_hex(8)}"
    lock = FileLock(f"{folder}{_LOCK}", timeout=0, thread_local=False)
    lock.acquire()
    try:
        folder.mkdir(mode=0o700)
    except OSError:
        _unlock(lock)
        raise
    return _Place(folder, lock)


def _dead(lock_file: Path) -> Path | None:
    """Remove what belongs to a lock that nobody holds; the folder, or None if there was none or somebody does."""
    folder = lock_file.with_suffix("")
    there = folder.is_dir()
    lock = FileLock(lock_file, timeout=0, thread_local=False)
    try:
        if not there and time.time() - lock_file.stat().st_mtime < _FORGOTTEN_SECONDS:
            return None
        lock.acquire()
    except (Timeout, OSError):  # a server lives, or it is another user's
        return None
    if not _remove(folder, lock):
        return None
    if there:
        logger.info("%s was removed, which a server that was killed had left", folder)
    return folder if there else None


def _remove(folder: Path, lock: FileLock) -> bool:
    """Remove both. If something is left of the folder (a file is held open, or still being written), so is its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        lock.release()
        return False
    _unlock(lock)
    return True


def _unlock(lock: FileLock) -> None:
    lock.release()
    with contextlib.suppress(OSError):
        Path(lock.lock_file).unlink()
