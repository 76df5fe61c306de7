"""Where requests wait for an instance. Any thread puts, the instances' threads take."""

from __future__ import annotations

import time
from asyncio import AbstractEventLoop, _get_running_loop
from collections import deque
from collections.abc import Callable
from threading import Condition
from typing import Protocol

from moorage._execution.bells import Bell, own_bell
from moorage._execution.seats import Seat
from moorage.types import Job


class JobQueue(Protocol):
    """A scheduler's queue."""

    def put(self, job: Job) -> None:
        """Add a request."""

    def take(self, seat: Seat | None = None) -> list[Job] | None:
        """Wait for the next requests to run together; None when the queue is closed and empty, or the seat has been left."""

    def wake(self) -> None:
        """Have every waiting `take` look whether its seat has been left."""

    def close(self) -> None:
        """No more requests will come. Every waiting `take` returns when what is queued has been taken."""

    def __len__(self) -> int:
        """How many requests wait, approximately."""


class EndOfTurn:
    """Has something done once at the end of the event loop's turn, however often it is asked for in that turn.

    Requests that arrive together are so handed over together: to wake a thread for the first would only make it compete with
    the loop, which has the others in its hands. Asked by a thread that runs no loop, it is done at once.
    """

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._due: AbstractEventLoop | None = None

    def ask(self) -> None:
        """Any thread."""
        loop = _get_running_loop()
        if loop is None:
            self._act()
        elif loop is not self._due:
            self._due = loop
            loop.call_soon(self._run)

    def _run(self) -> None:
        self._due = None  # first: what is asked for from now on is not seen by this time
        self._act()


class FifoQueue:
    """One request at a time, in the order of arrival: the default scheduler.

    There is no lock: whoever puts a request first appends it and then looks who sleeps; whoever goes to sleep first says so and
    then looks for requests once more. So one of the two sees the other.
    """

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._sleeping: deque[Bell] = deque()
        self._closed = False
        self._end_of_turn = EndOfTurn(self._wake)

    def put(self, job: Job) -> None:
        self._jobs.append(job)
        if self._sleeping:
            self._end_of_turn.ask()

    def take(self, seat: Seat | None = None) -> list[Job] | None:
        while True:
            if seat is not None and seat.left:
                self._wake()  # if this thread was woken for a request, another must have it
                return None
            try:
                return [self._jobs.popleft()]
            except IndexError:
                if self._closed:
                    return None
            self._sleep(seat)

    def _sleep(self, seat: Seat | None) -> None:
        bell = own_bell()
        self._sleeping.append(bell)
        if self._jobs or self._closed or (seat is not None and seat.left):
            try:
                self._sleeping.remove(bell)
            except ValueError:  # somebody is about to ring it
                bell.wait()
        else:
            bell.wait()

    def _wake(self) -> None:
        """Wake a sleeper for each request, as far as there are any."""
        for _ in range(len(self._jobs)):
            if not self._wake_one():
                return

    def _wake_one(self) -> bool:
        try:
            bell = self._sleeping.pop()
        except IndexError:
            return False
        bell.ring()
        return True

    def wake(self) -> None:
        while self._wake_one():
            pass

    def close(self) -> None:
        self._closed = True
        self.wake()

    def __len__(self) -> int:
        return len(self._jobs)


class BatchQueue:
    """Requests that wait together run together, up to `max_rows` rows: the dynamic batcher.

    An idle instance takes what waits. With `delay_us` it waits that long for a batch of a preferred size (the largest that
    still fits), counted from the arrival of the oldest request.
    """

    def __init__(self, max_rows: int, preferred: tuple[int, ...] = (), delay_us: int = 0) -> None:
        self._max_rows = max_rows
        self._goal = max(preferred, default=max_rows)
        self._delay_ns = delay_us * 1000
        self._jobs: deque[Job] = deque()
        self._rows = 0
        self._closed = False
        self._changed = Condition()
        self._end_of_turn = EndOfTurn(self._wake)

    def put(self, job: Job) -> None:
        with self._changed:
            self._jobs.append(job)
            self._rows += job.batch_size
        self._end_of_turn.ask()

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify()

    def take(self, seat: Seat | None = None) -> list[Job] | None:
        with self._changed:
            while not self._jobs or not self._ripe() or (seat is not None and seat.left):
                if seat is not None and seat.left:
                    self._changed.notify()  # if this thread was woken for a request, another must have it
                    return None
                if self._closed and not self._jobs:
                    self._changed.notify_all()
                    return None
                self._changed.wait(self._patience())
            batch = self._pop_batch()
            if self._jobs:
                self._changed.notify()
            return batch

    def _ripe(self) -> bool:
        return self._closed or self._rows >= self._goal or self._patience() == 0

    def _patience(self) -> float | None:
        """Seconds that the oldest request may still wait for company; None when nothing waits."""
        if not self._jobs:
            return None
        waited = time.monotonic_ns() - self._jobs[0].arrived_ns
        return max(0.0, (self._delay_ns - waited) / 1e9)

    def _pop_batch(self) -> list[Job]:
        batch = [self._jobs.popleft()]
        rows = batch[0].batch_size
        while self._jobs and rows + self._jobs[0].batch_size <= self._max_rows:
            job = self._jobs.popleft()
            rows += job.batch_size
            batch.append(job)
        self._rows -= rows
        return batch

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._jobs)
