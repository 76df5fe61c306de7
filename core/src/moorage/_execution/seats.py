"""The place of an instance at its model's queue."""

from __future__ import annotations

from threading import Event
from typing import Protocol

from moorage.types import Job


class Source(Protocol):
    """A queue, as far as a seat is concerned."""

    def take(self, seat: Seat | None = None) -> list[Job] | None:
        """Wait for the next requests to run together; None when they have ended, or the seat has been left."""

    def wake(self) -> None:
        """Have all who wait look again."""


class Seat:
    """Takes requests for one instance. It can be given up while the other instances go on."""

    def __init__(self, queue: Source, *, waiting: bool = False) -> None:
        """`waiting`: no request is taken before `open` is called."""
        self.left = False
        self._queue = queue
        self._gate = Event() if waiting else None

    def take(self) -> list[Job] | None:
        """Wait for the next requests to run together; None when the instance is to end."""
        if self._gate is not None:
            self._gate.wait()
            self._gate = None
        return self._queue.take(self)

    def open(self) -> None:
        gate = self._gate
        if gate is not None:
            gate.set()

    def leave(self) -> None:
        """Have `take` return None from now on. Requests that wait are left to the others."""
        self.left = True
        self.open()
        self._queue.wake()
