"""Waiting for what happens elsewhere, with an end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

R = TypeVar("R")
SECONDS = 30


def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; fails after a while."""
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


@contextmanager
def running(function: Callable[[], R], release: Path) -> Iterator[Future[R]]:
    """Run something beside the test that waits for a file; the file is made at the end at the latest, and the end awaited."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(function)
        try:
            until(lambda: reached(release) or future.done())
            yield future
        finally:
            release.touch()
            future.result(SECONDS)


def reached(release: Path) -> bool:
    """Whether a model waits for this file."""
    return release.with_name(f"{release.name}.reached").exists()
