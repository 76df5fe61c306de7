"""Counts and times of one version. Each instance has a recorder of its own, so that counting takes no lock."""

from __future__ import annotations

import time
from bisect import bisect_left
from typing import Final

from attrs import define, field

DURATION_BOUNDS_NS: Final = tuple(
    int(milliseconds * 1e6) for milliseconds in (1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
)
"""Upper bounds of the classes into which the durations of requests are sorted."""


@define(slots=True)
class Tally:
    """How often, and nanoseconds altogether."""

    count: int = 0
    ns: int = 0

    def add(self, ns: int) -> None:
        self.count += 1
        self.ns += ns

    def merge(self, other: Tally) -> None:
        self.count += other.count
        self.ns += other.ns


@define(slots=True)
class BatchTally:
    """Times of the executions of one batch size."""

    compute_input: Tally = field(factory=Tally)
    compute_infer: Tally = field(factory=Tally)
    compute_output: Tally = field(factory=Tally)

    def merge(self, other: BatchTally) -> None:
        self.compute_input.merge(other.compute_input)
        self.compute_infer.merge(other.compute_infer)
        self.compute_output.merge(other.compute_output)


@define(slots=True)
class Execution:
    """The moments of one execution, `time.monotonic_ns`."""

    started: int = 0
    computing: int = 0
    computed: int = 0
    ended: int = 0


@define(slots=True)
class Recorder:
    """What one instance has done. Written by the instance's thread alone; read by anyone, a moment late."""

    inference_count: int = 0
    execution_count: int = 0
    last_inference_ms: int = 0
    success: Tally = field(factory=Tally)
    fail: Tally = field(factory=Tally)
    queue: Tally = field(factory=Tally)
    compute_input: Tally = field(factory=Tally)
    compute_infer: Tally = field(factory=Tally)
    compute_output: Tally = field(factory=Tally)
    batches: dict[int, BatchTally] = field(factory=dict)
    rejected: int = 0
    """Failures of requests that a queue did not take or keep."""
    durations: list[int] = field(factory=lambda: [0] * (len(DURATION_BOUNDS_NS) + 1))
    """Successful requests by how long they took: up to each bound of `DURATION_BOUNDS_NS` and over the one before, then the
    rest.
    """
    cancelled: int = 0
    """Failures of requests whose client went away before they were run."""

    def executed(self, times: Execution, rows: int) -> None:
        """An execution of `rows` rows has ended, well or not."""
        self.execution_count += 1
        self.last_inference_ms = time.time_ns() // 1_000_000
        batch = self.batches.get(rows)
        if batch is None:
            batch = self.batches[rows] = BatchTally()
        batch.compute_input.add(times.computing - times.started)
        batch.compute_infer.add(times.computed - times.computing)
        batch.compute_output.add(times.ended - times.computed)

    def succeeded(self, times: Execution, arrived: int, rows: int) -> None:
        """A request of the execution was answered."""
        self.inference_count += rows
        duration = times.ended - arrived
        self.success.add(duration)
        self.durations[bisect_left(DURATION_BOUNDS_NS, duration)] += 1
        self.queue.add(times.started - arrived)
        self.compute_input.add(times.computing - times.started)
        self.compute_infer.add(times.computed - times.computing)
        self.compute_output.add(times.ended - times.computed)

    def failed(self, times: Execution, arrived: int) -> None:
        """A request of the execution failed."""
        self.fail.add(times.ended - arrived)

    def refused(self, arrived: int) -> None:
        """A request was refused by its queue."""
        self.rejected += 1
        self.fail.add(time.monotonic_ns() - arrived)

    def dropped(self, arrived: int) -> None:
        """A request was not run, since its client has gone."""
        self.cancelled += 1
        self.fail.add(time.monotonic_ns() - arrived)

    def merge(self, other: Recorder) -> None:
        self.inference_count += other.inference_count
        self.execution_count += other.execution_count
        self.last_inference_ms = max(self.last_inference_ms, other.last_inference_ms)
        for name in ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output"):
            getattr(self, name).merge(getattr(other, name))
        self.rejected += other.rejected
        self.cancelled += other.cancelled
        self.durations = [mine + theirs for mine, theirs in zip(self.durations, other.durations, strict=True)]
        for rows, batch in tuple(other.batches.items()):
            self.batches.setdefault(rows, BatchTally()).merge(batch)


def total(recorders: tuple[Recorder, ...]) -> Recorder:
    """The sum over the instances."""
    whole = Recorder()
    for recorder in recorders:
        whole.merge(recorder)
    return whole
