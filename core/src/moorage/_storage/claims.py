"""Who brings a file into a cache: one of the servers that want it, while the others wait."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

logger = logging.getLogger(__name__)

STRIPES: Final = 4096
"""How many locks there are. Two names that share one wait for each other without need, which harms nothing."""
_PATIENCE: Final = 0.5


class Claims:
    """Locks by name, between threads and between servers, as files below `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def hold(self, names: Iterable[str], what: str, go_on: Callable[[], None]) -> Iterator[None]:
        """Hold all of these. `go_on` is called while others hold one, and raises what is to end the waiting.

        Locks are taken in one order, so that two servers never wait for each other. Raises OSError.
        """
        with ExitStack() as held:
            for stripe in sorted({_stripe(name) for name in names}):
                lock = FileLock(self._root / f"{stripe:03x}.lock", thread_local=False)
                self._take(lock, what, go_on)
                held.callback(lock.release)
            yield

    @staticmethod
    def _take(lock: FileLock, what: str, go_on: Callable[[], None]) -> None:
        patience = 0.0
        while True:
            try:
                lock.acquire(timeout=patience, poll_interval=0.02)
            except Timeout:
                if not patience:
                    logger.info("%s: waiting for another load that brings the same files into the cache", what)
                patience = _PATIENCE
                go_on()
            else:
                return


def _stripe(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest()) % STRIPES
