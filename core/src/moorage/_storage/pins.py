"""Which files of a cache its servers need: each keeps a list, in a folder that goes with it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterable
from typing import Final

from moorage._storage.scratch import PREFIX, Scratch
from moorage._storage.shelf import size_of

_FOLDER: Final = "pins"


class Pins:
    """The pins of this server in its private folder, and how to see those of all servers beside it."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._counts: Counter[str] = Counter()
        self._guard = threading.Lock()

    def add(self, keys: Iterable[str]) -> None:
        """Need these once more. Raises OSError."""
        with self._guard:
            folder = self._scratch.path / _FOLDER
            folder.mkdir(exist_ok=True)
            for key in keys:
                if not self._counts[key]:
                    (folder / key).touch()
                self._counts[key] += 1

    def drop(self, keys: Iterable[str]) -> list[str]:
        """Need these once less; those that are not needed any more."""
        with self._guard:
            self._counts.subtract(keys)
            gone = [key for key, count in self._counts.items() if count <= 0]
            for key in gone:
                del self._counts[key]
                with contextlib.suppress(OSError):
                    (self._scratch.path / _FOLDER / key).unlink()
            return gone

    def all(self) -> dict[str, int]:
        """What the servers need, with the bytes of each."""
        found = {}
        for server in self._scratch.parent.glob(f"{PREFIX}*"):
            with contextlib.suppress(OSError), os.scandir(server / _FOLDER) as pins:  # a lock, or a server that just ends
                for pin in pins:
                    found[pin.name] = size_of(pin.name)
        return found
