"""The files of a cache on disk: each a folder of its own, which appears and goes in one step.

    entries/<key>/content       the file
    entries/<key>/about.json    its check sum, and where it is from

The time of the folder is that of its last use. A key ends with the file's size.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from moorage._storage.cloning import checksum, clone
from moorage._storage.room import Kept


class Shelf:
    """The entries below `root`. `aside` makes folders on the same file system, for what is not there yet or not any more."""

    def __init__(self, root: Path, aside: Callable[[str], Path]) -> None:
        self._root = root
        self._aside = aside

    def kept(self) -> dict[str, Kept]:
        """All entries by their keys."""
        found = {}
        with os.scandir(self._root) as entries:
            for entry in entries:
                with contextlib.suppress(OSError, ValueError):  # it goes just now, or is no entry
                    found[entry.name] = Kept(size_of(entry.name), entry.stat().st_mtime_ns)
        return found

    def put(self, key: str, source: Path, origin: str) -> None:
        """Keep a copy of a file. Raises OSError."""
        if (self._root / key).is_dir():
            return
        made = self._aside("new")
        try:
            clone(source, made / "content")
            about = {"checksum": checksum(source), "origin": origin}
            (made / "about.json").write_text(json.dumps(about), encoding="utf-8")
            made.chmod(0o755)
            self._place(made, key)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _place(self, made: Path, key: str) -> None:
        try:
            made.rename(self._root / key)
        except OSError:
            if not (self._root / key).is_dir():  # else another server was faster
                raise

    def take(self, key: str, target: Path) -> bool:
        """Copy an entry to a file, and note that it was used. False if there is none, or it is damaged; then it is removed."""
        folder = self._root / key
        try:
            expected = json.loads((folder / "about.json").read_bytes())["checksum"]
            clone(folder / "content", target)
            whole = target.stat().st_size == size_of(key) and checksum(target) == expected
        except FileNotFoundError:
            whole = False
            if not folder.is_dir():
                return False
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            self.remove(key)
            return False
        self.touch(key)
        return True

    def touch(self, key: str) -> None:
        """Note that an entry is in use, or was until now."""
        now = time.time_ns()
        with contextlib.suppress(OSError):
            os.utime(self._root / key, ns=(now, now))

    def remove(self, key: str) -> None:
        """Remove an entry, if it is there. Raises OSError."""
        aside = self._aside("old")
        with contextlib.suppress(FileNotFoundError):
            (self._root / key).rename(aside / key)
        shutil.rmtree(aside, ignore_errors=True)


def size_of(key: str) -> int:
    """The bytes of an entry, by its key. Raises ValueError for what is no key."""
    return int(key.rpartition("-")[2])
