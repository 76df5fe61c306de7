"""Waking a single thread.

Python's locks wake a thread while the caller holds the interpreter, for which the woken thread must then wait again. A write
to a file descriptor lets go of it first, and tells the kernel that the writer is about to wait: on a busy machine such a round
trip takes half the time.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Final, Protocol


class Bell(Protocol):
    """Wakes the thread that waits for it. A ring that comes before the wait is not lost."""

    def ring(self) -> None:
        """Any thread."""

    def wait(self) -> None:
        """Return after a ring. One thread only, once for each ring."""


class LockBell:
    """Works everywhere."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        self._lock.release()

    def wait(self) -> None:
        self._lock.acquire()


if sys.platform == "linux":
    _ONE: Final = (1).to_bytes(8, sys.byteorder)

    class EventBell:
        """Has a file descriptor, and closes it when neither the thread nor anyone who is to ring knows it any more."""

        def __init__(self) -> None:
            self._fd = os.eventfd(0)

        def ring(self) -> None:
            os.write(self._fd, _ONE)

        def wait(self) -> None:
            os.read(self._fd, 8)

        def __del__(self) -> None:
            with contextlib.suppress(OSError, AttributeError):
                os.close(self._fd)


_OWN = threading.local()


def own_bell() -> Bell:
    """The bell of the calling thread."""
    bell: Bell | None = getattr(_OWN, "bell", None)
    if bell is None:
        bell = _OWN.bell = _new()
    return bell


def leave_own_bell() -> None:
    """Have the calling thread get a new bell: the old one may still be rung for what the thread no longer waits for."""
    _OWN.bell = None


def _new() -> Bell:
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # no file descriptors left
            return EventBell()
    return LockBell()
