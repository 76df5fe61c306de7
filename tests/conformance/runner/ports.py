"""Ports for servers that run at the same time, in several processes of a test run or in several test runs."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from itertools import cycle

FIRST, LAST = 19000, 29990
"""Below the range from which the system takes the ports of outgoing connections."""

WORKERS = 8


def share(worker: int) -> range:
    """The ports of one of the processes of a test run."""
    width = (LAST - FIRST) // WORKERS
    first = FIRST + width * (worker % WORKERS)
    return range(first, first + width)


class Ports:
    """Hands out free ports; the start within the share differs from run to run, so that two runs seldom meet."""

    def __init__(self, ports: range) -> None:
        start = os.getpid() * 37 % len(ports)
        self._ports: Iterator[int] = cycle([*ports[start:], *ports[:start]])
        self._lock = threading.Lock()

    def take(self, count: int = 3) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._next_free() for _ in range(count))

    def _next_free(self) -> int:
        return next(port for port in self._ports if _is_free(port))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
