"""How downloads get on: lines in the log. `moorage._storage.bars` draws on a terminal."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, Protocol

from moorage._logging import get_logger
from moorage._storage.sizes import shown
from moorage.storage import Progress as Arrived

log = get_logger("moorage.storage")

SHARE: Final = 0.1
"""How much more of a download has to be there for another line in the log, if a second has passed."""
SHORT: Final = 1.0
LONG: Final = 10.0
"""Seconds after which there is another line in any case."""


class Reporter(Protocol):
    """Tells of downloads, several at once, from any thread."""

    def download(self, model: str, version: int, url: str, size: int) -> AbstractContextManager[Arrived]:
        """While it is entered, so many bytes of a version come from a URL; what it gives is told of those that have come."""


class LogReporter:
    """Says in the log that a download has begun, how far it is every tenth or every ten seconds, and how fast it was."""

    @contextmanager
    def download(self, model: str, version: int, url: str, size: int) -> Iterator[Arrived]:
        log.info("downloading", model=model, version=version, size=shown(size), source=url)
        pace = Pace(size)

        def arrived(count: int) -> None:
            done = pace.arrived(count)
            if done:
                part = f"{100 * done // size} %"
                log.info("downloading", model=model, version=version, done=part, of=shown(size), rate=pace.rate())

        yield arrived
        log.info("downloaded", model=model, version=version, **pace.fields())


class Pace:
    """What has come so far, and when that is worth a word."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._done = 0
        self._told = 0
        self._began = self._spoke = time.monotonic()
        self._guard = threading.Lock()

    def arrived(self, count: int) -> int:
        """The bytes that are there, if it is time to tell; else 0, as when it is all."""
        with self._guard:
            self._done += count
            silent = time.monotonic() - self._spoke
            far = self._done - self._told >= SHARE * self._size and silent >= SHORT
            if self._done >= self._size or not (far or silent >= LONG):
                return 0
            self._told, self._spoke = self._done, time.monotonic()
            return self._done

    def rate(self) -> str:
        """The bytes of a second, on the whole."""
        return f"{shown(self._done / max(self._seconds(), 1e-6))}/s"

    def fields(self) -> dict[str, Any]:
        """What is to be said at the end."""
        return {"size": shown(self._done), "seconds": round(self._seconds(), 2), "rate": self.rate()}

    def _seconds(self) -> float:
        return time.monotonic() - self._began
