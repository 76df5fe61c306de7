"""Downloads as bars on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from moorage._logging import get_logger
from moorage._storage.progress import Pace
from moorage.storage import Progress as Arrived

log = get_logger("moorage.storage")


class BarReporter:
    """Draws a bar for each download on a terminal, and lets the log have the last word."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._bars: Progress | None = None
        self._running = 0
        self._guard = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether there are bars."""
        return self._bars is not None

    @contextmanager
    def download(self, model: str, version: int, url: str, size: int) -> Iterator[Arrived]:
        bars, task = self._begin(f"{model} {version}", size)
        pace = Pace(size)

        def arrived(count: int) -> None:
            pace.arrived(count)
            bars.advance(task, count)

        try:
            yield arrived
        finally:
            self._end(bars, task)
        log.info("downloaded", model=model, version=version, source=url, **pace.fields())

    def _begin(self, what: str, size: int) -> tuple[Progress, TaskID]:
        with self._guard:
            if self._bars is None:
                self._bars = _bars(self._console)
                self._bars.start()
            self._running += 1
            return self._bars, self._bars.add_task(what, total=size)

    def _end(self, bars: Progress, task: TaskID) -> None:
        with self._guard:
            bars.remove_task(task)
            self._running -= 1
            if not self._running:
                bars.stop()
                self._bars = None


def bars() -> BarReporter | None:
    """Bars on standard error if people may look at it, else None."""
    return BarReporter() if sys.stderr.isatty() else None


def _bars(console: Console) -> Progress:
    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}"), *columns, console=console, transient=True, redirect_stdout=False)
