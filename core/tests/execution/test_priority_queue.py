"""The queue with policies: priorities, limits, timeouts, preferred sizes, order of answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage._execution.batch_sizes import BatchSizes, Cut
from moorage._execution.loading import queue_for
from moorage._execution.ordering import Ordering
from moorage._execution.priority_queue import Level, PriorityQueue
from moorage._execution.queues import BatchQueue, FifoQueue
from moorage.config import parse_text
from moorage.config.schema import DynamicBatching, ModelConfig, QueuePolicy, TimeoutAction
from moorage.errors import Cancelled, MoorageError, Unavailable
from moorage.types import InferRequest, InferResponse, Job

DELAY = TimeoutAction.DELAY
LONG_AGO = time.monotonic_ns() - 3600 * 10**9


class Told:
    """A sink that says when the request has ended, and how."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.error: MoorageError | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        self.ended.set()

    def fail(self, error: MoorageError) -> None:
        self.error = error
        self.ended.set()

    def complete(self) -> None:
        self.ended.set()


def job(name: str = "", *, rows: int = 1, priority: int = 0, timeout_us: int = 0, arrived: int = 0) -> Job:
    request = InferRequest("m", {}, id=name, priority=priority, timeout_us=timeout_us)
    return Job(request, Told(), arrived_ns=arrived or time.monotonic_ns(), batch_size=rows)


def told(one: Job) -> Told:
    assert isinstance(one.sink, Told)
    return one.sink


def queue_of(*jobs: Job, most: int = 1, name: str = "m", **batching: object) -> PriorityQueue:
    made = PriorityQueue(ModelConfig(name=name, max_batch_size=most), DynamicBatching(**batching))  # type: ignore[arg-type]
    for one in jobs:
        made.put(one)
    return made


def names(queue: PriorityQueue) -> list[str]:
    """What is left, batch by batch."""
    queue.close()
    found = []
    while (batch := queue.take()) is not None:
        found.append("".join(one.request.id for one in batch))
    return found


def test_the_lower_number_goes_first_and_the_default_is_for_all_others() -> None:
    jobs = [job("a"), job("b", priority=3), job("c", priority=1), job("d", priority=9), job("e", priority=1)]
    assert names(queue_of(*jobs, priority_levels=3, default_priority_level=2)) == ["c", "e", "a", "d", "b"]


def test_batches_are_filled_across_levels() -> None:
    jobs = [job("a", priority=2), job("b", priority=1), job("c", priority=2), job("d", priority=2)]
    assert names(queue_of(*jobs, most=3, priority_levels=2, default_priority_level=1)) == ["bac", "d"]


def test_each_level_has_its_own_limit() -> None:
    limits = {1: QueuePolicy(max_queue_size=1)}
    queue = queue_of(
        job("a", priority=1), job("b"), job("c"), priority_levels=2, default_priority_level=2, priority_queue_policy=limits
    )
    with pytest.raises(Unavailable, match=r"model 'm'.*1 requests wait"):
        queue.put(job("d", priority=1))
    assert (queue.recorder.rejected, queue.recorder.fail.count, len(queue)) == (1, 1, 3)
    assert queue.take() is not None
    queue.put(job("e", priority=1))
    assert names(queue) == ["e", "b", "c"]


def test_a_timeout_fails_the_request_while_nobody_takes() -> None:
    late = job("a")
    queue = queue_of(default_queue_policy=QueuePolicy(default_timeout_microseconds=20_000))
    queue.put(late)
    assert told(late).ended.wait(5)
    assert isinstance(told(late).error, Unavailable)
    assert (queue.recorder.rejected, len(queue)) == (1, 0)


@pytest.mark.parametrize(
    ("policy", "asked", "expected"),
    [
        (QueuePolicy(default_timeout_microseconds=1000), 0, 1000),
        (QueuePolicy(default_timeout_microseconds=1000), 10, 1000),
        (QueuePolicy(default_timeout_microseconds=1000, allow_timeout_override=True), 10, 10),
        (QueuePolicy(default_timeout_microseconds=1000, allow_timeout_override=True), 5000, 1000),
        (QueuePolicy(allow_timeout_override=True), 5000, 5000),
        (QueuePolicy(allow_timeout_override=True), 0, 0),
    ],
)
def test_a_request_may_shorten_its_timeout(policy: QueuePolicy, asked: int, expected: int) -> None:
    asking = job(timeout_us=asked, arrived=7)
    assert Level(policy).deadline(asking) == (7 + expected * 1000 if expected else 0)


def test_a_delayed_request_goes_behind_the_others_of_its_level() -> None:
    policy = QueuePolicy(timeout_action=DELAY, allow_timeout_override=True)
    jobs = [
        job("a", priority=1, timeout_us=1, arrived=LONG_AGO),
        job("b", priority=1),
        job("c", priority=2),
        job("d", priority=1, timeout_us=2, arrived=LONG_AGO),
    ]
    queue = queue_of(*jobs, priority_levels=2, default_priority_level=1, default_queue_policy=policy)
    assert names(queue) == ["b", "a", "d", "c"]
    assert not any(told(one).ended.is_set() for one in jobs)


def test_a_cancelled_request_is_failed_when_its_turn_comes() -> None:
    gone, wanted = job("a"), job("b")
    queue = queue_of(gone, wanted, priority_levels=1, default_priority_level=1)
    gone.request.cancelled = True
    assert queue.take() == [wanted]
    assert isinstance(told(gone).error, Cancelled)
    assert (queue.recorder.cancelled, queue.recorder.rejected) == (1, 0)


def test_closing_ends_takers_and_the_clock() -> None:
    policy = QueuePolicy(default_timeout_microseconds=3_600_000_000)
    queue = queue_of(job("a"), name="closing", default_queue_policy=policy)
    with ThreadPoolExecutor(3) as pool:
        takers = [pool.submit(queue.take) for _ in range(3)]
        queue.close()
        taken = [taker.result(5) for taker in takers]
    assert sorted(batch is None for batch in taken) == [False, True, True]
    for thread in threading.enumerate():
        if thread.name == "timeouts-closing":
            thread.join(5)
            assert not thread.is_alive()


def test_a_preferred_size_is_sent_at_once_and_others_wait() -> None:
    queue = queue_of(most=8, preferred_batch_size=(2, 4), max_queue_delay_microseconds=3_600_000_000)
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(queue.take)
        queue.put(job("a"))
        assert not taken.done()
        queue.put(job("b"))
        assert [one.request.id for one in taken.result(5) or ()] == ["a", "b"]


def test_without_a_delay_the_largest_preferred_size_is_taken() -> None:
    queue = queue_of(*[job(name) for name in "abcdefg"], most=8, preferred_batch_size=(2, 4))
    assert names(queue) == ["abcd", "ef", "g"]


def test_a_delay_that_is_over_takes_whatever_fits() -> None:
    jobs = [job(name, arrived=LONG_AGO) for name in "abcde"]
    queue = queue_of(*jobs, most=8, preferred_batch_size=(2, 4), max_queue_delay_microseconds=1000)
    assert [one.request.id for one in queue.take() or ()] == list("abcde")


@pytest.mark.parametrize(
    ("rows", "preferred", "expected"),
    [
        ([], {4}, Cut(0, 0, complete=False)),
        ([1, 1, 1], {8}, Cut(0, 3, complete=False)),
        ([1, 1, 1, 1, 1], {4}, Cut(4, 5, complete=True)),
        ([1, 1, 1], {2, 4}, Cut(2, 3, complete=False)),
        ([1, 1, 1, 1], {2, 4}, Cut(4, 4, complete=True)),
        ([3, 2, 2], {4}, Cut(1, 3, complete=True)),
        ([5, 5], {8}, Cut(1, 1, complete=True)),
        ([9], {8}, Cut(0, 1, complete=True)),
    ],
)
def test_where_to_cut(rows: list[int], preferred: set[int], expected: Cut) -> None:
    assert BatchSizes(8, frozenset(preferred)).cut(rows) == expected


@given(
    rows=st.lists(st.integers(1, 4), min_size=1, max_size=30),
    preferred=st.frozensets(st.integers(1, 4)),
    levels=st.integers(0, 3),
    data=st.data(),
)
@settings(deadline=None)
def test_every_request_comes_out_once_and_in_order_of_its_level(
    rows: list[int], preferred: frozenset[int], levels: int, data: st.DataObject
) -> None:
    jobs = [job(rows=count, priority=data.draw(st.integers(0, levels))) for count in rows]
    queue = queue_of(
        *jobs,
        most=4,
        preferred_batch_size=tuple(sorted(preferred)),
        priority_levels=levels,
        default_priority_level=min(1, levels),
    )
    queue.close()
    taken = []
    while (batch := queue.take()) is not None:
        assert sum(one.batch_size for one in batch) <= 4
        taken += batch
    expected = sorted(jobs, key=lambda one: one.request.priority or min(1, levels))
    assert [id(one) for one in taken] == [id(one) for one in expected]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("max_batch_size: 4", FifoQueue),
        ("max_batch_size: 4 dynamic_batching {}", BatchQueue),
        ("max_batch_size: 4 dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 9 }", BatchQueue),
        ("max_batch_size: 4 dynamic_batching { default_queue_policy {} }", BatchQueue),
        ("dynamic_batching {}", FifoQueue),
        ("dynamic_batching { default_queue_policy { max_queue_size: 1 } }", PriorityQueue),
        ("max_batch_size: 4 dynamic_batching { preferred_batch_size: 2 }", PriorityQueue),
        ("max_batch_size: 4 dynamic_batching { preserve_ordering: true }", PriorityQueue),
        ("max_batch_size: 4 dynamic_batching { priority_levels: 2 default_priority_level: 1 }", PriorityQueue),
    ],
)
def test_which_configuration_needs_it(text: str, kind: type) -> None:
    assert type(queue_for(parse_text(text).config)) is kind


class Heard:
    """Writes down what its request is answered, with those of others."""

    def __init__(self, name: str, log: list[str]) -> None:
        self._name, self._log = name, log

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._log.append(f"{self._name}{'!' if final else ''}")

    def fail(self, error: MoorageError) -> None:
        self._log.append(f"{self._name}x")

    def complete(self) -> None:
        self._log.append(f"{self._name}.")


@pytest.fixture
def ordered() -> tuple[list[str], Callable[[str], Job]]:
    log: list[str] = []
    ordering = Ordering()

    def add(name: str) -> Job:
        one = Job(InferRequest("m", {}), Heard(name, log))
        ordering.add(one)
        return one

    return log, add


def test_answers_wait_for_those_before(ordered: tuple[list[str], Callable[[str], Job]]) -> None:
    log, add = ordered
    first, second, third = add("a"), add("b"), add("c")
    third.sink.send(InferResponse([]), final=True)
    second.sink.send(InferResponse([]), final=False)
    assert log == []
    first.sink.send(InferResponse([]), final=False)
    assert log == ["a"]
    first.sink.complete()
    assert log == ["a", "a.", "b"]
    second.sink.fail(Unavailable("no"))
    assert log == ["a", "a.", "b", "bx", "c!"]


def test_answers_of_many_threads_keep_the_order(ordered: tuple[list[str], Callable[[str], Job]]) -> None:
    log, add = ordered
    jobs = [add(str(number)) for number in range(300)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda one: one.sink.send(InferResponse([]), final=True), reversed(jobs)))
    assert log == [f"{number}!" for number in range(300)]


def test_a_model_that_keeps_the_order_has_ordered_sinks() -> None:
    first, second = job("a"), job("b")
    sinks = told(first), told(second)
    queue = queue_of(first, second, preserve_ordering=True)
    assert queue.take() == [first]
    assert queue.take() == [second]
    second.sink.complete()
    assert not sinks[1].ended.is_set()
    first.sink.complete()
    assert sinks[1].ended.is_set()
