"""The dynamic batcher with everything that can be configured: preferred sizes, priorities, limits, timeouts, order."""

from __future__ import annotations

import heapq
import itertools
import time
from collections import deque
from collections.abc import Iterator
from threading import Condition, Lock, Thread

from attrs import define

from moorage._execution.batch_sizes import BatchSizes
from moorage._execution.ordering import Ordering
from moorage._execution.queues import EndOfTurn
from moorage._execution.seats import Seat
from moorage._execution.statistics import Recorder
from moorage.config.schema import DynamicBatching, ModelConfig, QueuePolicy, TimeoutAction
from moorage.errors import Cancelled, MoorageError, Unavailable
from moorage.types import InferRequest, Job


@define(eq=False, slots=True)
class _Entry:
    """A request that waits; `job` is None once it does no more."""

    job: Job | None
    level: Level


class Level:
    """The requests of one priority. Those whose time is up may be delayed until no other is left."""

    def __init__(self, policy: QueuePolicy) -> None:
        self.policy = policy
        self.count = 0
        self._timely: deque[_Entry] = deque()
        self._delayed: deque[_Entry] = deque()

    def add(self, job: Job, *, delayed: bool = False) -> _Entry:
        entry = _Entry(job, self)
        (self._delayed if delayed else self._timely).append(entry)
        self.count += 1
        return entry

    def entries(self) -> Iterator[_Entry]:
        """Those that wait, in their order."""
        for queue in (self._timely, self._delayed):
            while queue and queue[0].job is None:
                queue.popleft()
            yield from (entry for entry in queue if entry.job is not None)

    @property
    def full(self) -> bool:
        return 0 < self.policy.max_queue_size <= self.count

    def deadline(self, job: Job) -> int:
        """When the request will have waited too long, `time.monotonic_ns`; 0 for never."""
        timeout = self.policy.default_timeout_microseconds
        asked = job.request.timeout_us
        if self.policy.allow_timeout_override and asked and (not timeout or asked < timeout):
            timeout = asked
        return job.arrived_ns + timeout * 1000 if timeout else 0


class PriorityQueue:
    """A queue for each priority level, each with its policy; level 1 goes first, and batches are filled across levels.

    Requests that have waited too long are failed (or moved behind the others of their level) at that moment, also while
    all instances are busy; those whose client has gone are failed when their turn comes.
    """

    def __init__(self, config: ModelConfig, batching: DynamicBatching) -> None:
        self.recorder = Recorder()
        """Counts the requests that never came to an instance; written under the lock of the queue."""
        self._model = config.name
        self._sizes = BatchSizes(max(1, config.max_batch_size), frozenset(batching.preferred_batch_size))
        self._delay_ns = batching.max_queue_delay_microseconds * 1000
        self._levels = _levels(batching)
        self._default_level = batching.default_priority_level
        self._ordering = Ordering() if batching.preserve_ordering else None
        self._deadlines: list[tuple[int, int, _Entry]] = []
        self._numbers = itertools.count()
        self._refused: list[tuple[Job, MoorageError]] = []
        self._closed = False
        lock = Lock()
        self._changed = Condition(lock)
        self._clock = Condition(lock)
        self._sweeper: Thread | None = None
        self._end_of_turn = EndOfTurn(self._wake_one)

    def put(self, job: Job) -> None:
        """Add a request. Raises Unavailable if the queue of its priority is full."""
        level = self._level(job.request)
        with self._changed:
            if level.full:
                self.recorder.refused(job.arrived_ns)
                raise Unavailable(
                    f"model '{self._model}': its queue is full, {level.count} requests wait (max_queue_size); try again later"
                )
            entry = level.add(job)
            if deadline := level.deadline(job):
                self._watch(deadline, entry)
        self._end_of_turn.ask()

    def _wake_one(self) -> None:
        with self._changed:
            self._changed.notify()

    def take(self, seat: Seat | None = None) -> list[Job] | None:
        while True:
            with self._changed:
                if seat is not None and seat.left:
                    self._changed.notify()  # if this thread was woken for a request, another must have it
                    return None
                batch, ripe_ns = self._pick()
                refused = self._take_refused()
                if not batch and not refused:
                    if self._closed and not len(self):
                        self._changed.notify_all()
                        self._clock.notify()
                        return None
                    self._changed.wait(_seconds_until(ripe_ns))
            _fail(refused)
            if batch:
                return batch

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            self._clock.notify()

    def __len__(self) -> int:
        return sum(level.count for level in self._levels.values())

    def _level(self, request: InferRequest) -> Level:
        found = self._levels.get(request.priority)
        return self._levels[self._default_level] if found is None else found

    def _pick(self) -> tuple[list[Job], int]:
        """The next batch, if there is one now; else when the requests that wait will have waited long enough (0: never)."""
        self._expire()
        waiting = [entry.job for entry in self._candidates() if entry.job is not None]
        if not waiting:
            return [], 0
        cut = self._sizes.cut(job.batch_size for job in waiting)
        ripe_ns = min(job.arrived_ns for job in waiting[: cut.fitting]) + self._delay_ns
        overdue = self._closed or time.monotonic_ns() >= ripe_ns
        if cut.preferred and not (overdue and self._delay_ns):
            return self._pop(cut.preferred), 0
        if cut.complete or overdue:
            return self._pop(cut.fitting), 0
        return [], ripe_ns

    def _candidates(self) -> Iterator[_Entry]:
        """Those whose turn is next, up to the first that does not fit into a batch with the others."""
        rows = 0
        for entry in self._entries():
            job = entry.job
            if job is None:
                continue
            if job.request.cancelled:
                self._refuse(entry, Cancelled(f"model '{self._model}': the request was cancelled while it waited"))
                continue
            yield entry
            rows += job.batch_size
            if rows > self._sizes.most:
                return

    def _entries(self) -> Iterator[_Entry]:
        for level in self._levels.values():
            yield from level.entries()

    def _pop(self, count: int) -> list[Job]:
        batch = [_leave(entry) for entry in itertools.islice(self._entries(), count)]
        if self._ordering is not None:
            for job in batch:
                self._ordering.add(job)
        if len(self):
            self._changed.notify()
        return batch

    def _watch(self, deadline: int, entry: _Entry) -> None:
        heapq.heappush(self._deadlines, (deadline, next(self._numbers), entry))
        if self._sweeper is None:
            self._sweeper = Thread(target=self._sweep, name=f"timeouts-{self._model}", daemon=True)
            self._sweeper.start()
        elif self._deadlines[0][2] is entry:
            self._clock.notify()

    def _sweep(self) -> None:
        """Act on deadlines at once, whatever the instances do."""
        while True:
            with self._clock:
                self._expire()
                refused = self._take_refused()
                if not refused:
                    if self._closed and not len(self):
                        return
                    self._clock.wait(_seconds_until(self._deadlines[0][0] if self._deadlines else 0))
            _fail(refused)

    def _expire(self) -> None:
        now = time.monotonic_ns()
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].job is None):
            _, _, entry = heapq.heappop(self._deadlines)
            if entry.job is None:
                continue
            if entry.level.policy.timeout_action is TimeoutAction.DELAY:
                entry.level.add(_leave(entry), delayed=True)
            else:
                self._refuse(entry, Unavailable(f"model '{self._model}': the request waited longer than its timeout"))

    def _refuse(self, entry: _Entry, error: MoorageError) -> None:
        job = _leave(entry)
        self._refused.append((job, error))
        if isinstance(error, Cancelled):
            self.recorder.dropped(job.arrived_ns)
        else:
            self.recorder.refused(job.arrived_ns)

    def _take_refused(self) -> list[tuple[Job, MoorageError]]:
        """The requests to fail, which is done without the lock: their sinks are not ours."""
        refused, self._refused = self._refused, []
        return refused


def _levels(batching: DynamicBatching) -> dict[int, Level]:
    default = batching.default_queue_policy or QueuePolicy()
    if not batching.priority_levels:
        return {batching.default_priority_level: Level(default)}
    policies = batching.priority_queue_policy
    return {level: Level(policies.get(level, default)) for level in range(1, batching.priority_levels + 1)}


def _leave(entry: _Entry) -> Job:
    """Take a request out. Its place stays in the queue, empty, until it comes to the front."""
    job = entry.job
    if job is None:
        raise LookupError("this request waits no more")
    entry.job = None
    entry.level.count -= 1
    return job


def _fail(refused: list[tuple[Job, MoorageError]]) -> None:
    for job, error in refused:
        job.sink.fail(error)


def _seconds_until(moment_ns: int) -> float | None:
    return max(0.0, (moment_ns - time.monotonic_ns()) / 1e9) if moment_ns else None
