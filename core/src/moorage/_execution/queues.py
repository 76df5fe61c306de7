"""Where requests wait for an instance. Any thread puts, the instances' threads take."""

from __future__ import annotations

import contextlib
import time
from asyncio import AbstractEventLoop, _get_running_loop
from collections import deque
from collections.abc import Callable
from threading import Condition, Lock
from typing import Protocol

from moorage.types import Job


class JobQueue(Protocol):
    """A scheduler's queue."""

    def put(self, job: Job) -> None:
        """Add a request."""

    def take(self) -> list[Job] | None:
        """Wait for the next requests to run together; None when the queue is closed and empty."""

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
        self._sleeping: deque[Lock] = deque()
        self._closed = False
        self._end_of_turn = EndOfTurn(self._wake)

    def put(self, job: Job) -> None:
        self._jobs.append(job)
        if self._sleeping:
            self._end_of_turn.ask()

    def take(self) -> list[Job] | None:
        while True:
            try:
                return [self._jobs.popleft()]
            except IndexError:
                if self._closed:
                    return None
            self._sleep()

    def _sleep(self) -> None:
        bed = Lock()
        bed.acquire()
        self._sleeping.append(bed)
        if not self._jobs and not self._closed:
            bed.acquire()
            return
        with contextlib.suppress(ValueError):  # somebody is waking this thread just now
            self._sleeping.remove(bed)

    def _wake(self) -> None:
        """Wake a sleeper for each request, as far as there are any."""
        for _ in range(len(self._jobs)):
            if not self._wake_one():
                return

    def _wake_one(self) -> bool:
        try:
            bed = self._sleeping.pop()
        except IndexError:
            return False
        bed.release()
        return True

    def close(self) -> None:
        self._closed = True
        while self._wake_one():
            pass

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

    def take(self) -> list[Job] | None:
        with self._changed:
            while not self._jobs or not self._ripe():
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

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __len__(self) -> int:
        return len(self._jobs)
