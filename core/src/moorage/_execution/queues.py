"""Where requests wait for an instance. Any thread puts, the instances' threads take."""

from __future__ import annotations

import time
from collections import deque
from queue import SimpleQueue
from threading import Condition
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


class FifoQueue:
    """One request at a time, in the order of arrival: the default scheduler."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()

    def put(self, job: Job) -> None:
        self._jobs.put(job)

    def take(self) -> list[Job] | None:
        job = self._jobs.get()
        if job is None:
            self._jobs.put(None)  # the other instances must see the end too
            return None
        return [job]

    def close(self) -> None:
        self._jobs.put(None)

    def __len__(self) -> int:
        return self._jobs.qsize()


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

    def put(self, job: Job) -> None:
        with self._changed:
            self._jobs.append(job)
            self._rows += job.batch_size
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
