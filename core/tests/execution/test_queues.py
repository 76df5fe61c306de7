"""Queues: order, batches, the end."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from queue import SimpleQueue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage._execution import bells
from moorage._execution.queues import BatchQueue, FifoQueue
from moorage.types import InferRequest, Job


class NoSink:
    def send(self, response: object, *, final: bool) -> None: ...

    def fail(self, error: object) -> None: ...

    def complete(self) -> None: ...


def job(name: str = "", rows: int = 1) -> Job:
    return Job(InferRequest("m", {}, id=name), NoSink(), batch_size=rows)


def test_fifo_gives_one_at_a_time_in_order() -> None:
    queue = FifoQueue()
    jobs = [job(str(i)) for i in range(3)]
    for item in jobs:
        queue.put(item)
    assert len(queue) == 3
    assert [queue.take() for _ in jobs] == [[item] for item in jobs]


@pytest.mark.parametrize("queue", [FifoQueue(), BatchQueue(4)])
def test_closing_ends_every_taker_after_what_is_queued(queue: FifoQueue | BatchQueue) -> None:
    with ThreadPoolExecutor(3) as pool:
        takers = [pool.submit(queue.take) for _ in range(3)]
        queue.put(job("last"))
        queue.close()
        taken = [taker.result(5) for taker in takers]
    assert sorted((batch is None) for batch in taken) == [False, True, True]


@given(rows=st.lists(st.integers(1, 4), min_size=1, max_size=30))
@settings(deadline=None)
def test_batches_keep_the_order_and_the_limit(rows: list[int]) -> None:
    queue = BatchQueue(4)
    jobs = [job(str(i), count) for i, count in enumerate(rows)]
    for item in jobs:
        queue.put(item)
    queue.close()
    batches = []
    while (batch := queue.take()) is not None:
        batches.append(batch)
    assert [item for batch in batches for item in batch] == jobs
    assert all(sum(item.batch_size for item in batch) <= 4 for batch in batches)
    for batch, following in pairwise(batches):
        assert sum(item.batch_size for item in batch) + following[0].batch_size > 4


def test_a_delay_waits_for_company_and_no_longer_than_needed() -> None:
    queue = BatchQueue(4, preferred=(2,), delay_us=60_000_000)
    taken: list[list[Job] | None] = []
    taker = threading.Thread(target=lambda: taken.append(queue.take()))
    taker.start()
    first, second = job("1"), job("2")
    queue.put(first)
    assert not taken
    queue.put(second)
    taker.join(5)
    assert taken == [[first, second]]


def test_a_delay_ends_by_itself() -> None:
    queue = BatchQueue(4, delay_us=1000)
    alone = job("1")
    queue.put(alone)
    assert queue.take() == [alone]


def asleep(queue: FifoQueue | BatchQueue) -> None:
    """Wait until a taker sleeps."""
    while not (queue._sleeping if isinstance(queue, FifoQueue) else queue._changed._waiters):  # type: ignore[attr-defined]
        time.sleep(0)


@pytest.mark.parametrize("queue", [FifoQueue(), BatchQueue(4)])
async def test_requests_of_one_turn_of_the_loop_are_handed_over_at_its_end(queue: FifoQueue | BatchQueue) -> None:
    loop = asyncio.get_running_loop()
    taken: asyncio.Queue[list[Job] | None] = asyncio.Queue()

    def take() -> None:
        while (batch := queue.take()) is not None:
            loop.call_soon_threadsafe(taken.put_nowait, batch)

    taker = threading.Thread(target=take, daemon=True)
    taker.start()
    queue.put(job("first"))
    assert await asyncio.wait_for(taken.get(), 5)
    await asyncio.to_thread(asleep, queue)
    jobs = [job(str(number)) for number in range(3)]
    for item in jobs:
        queue.put(item)
        taker.join(0.01)  # time enough to take it, if it were told
        assert len(queue) == jobs.index(item) + 1
    found: list[Job] = []
    while len(found) < 3:
        batch = await asyncio.wait_for(taken.get(), 5)
        found += batch or []
    assert found == jobs
    queue.close()
    taker.join(5)


class Takers:
    """Threads that empty a queue; `all_taken` is set when they have had `count` requests."""

    def __init__(self, queue: FifoQueue | BatchQueue, count: int) -> None:
        self.taken: list[str] = []
        self.all_taken = threading.Event()
        self._queue = queue
        self._count = count
        self._threads = [threading.Thread(target=self._take, daemon=True) for _ in range(3)]
        for thread in self._threads:
            thread.start()

    def _take(self) -> None:
        while (batch := self._queue.take()) is not None:
            self.taken.extend(item.request.id for item in batch)
            if len(self.taken) >= self._count:
                self.all_taken.set()

    def end(self) -> bool:
        self._queue.close()
        for thread in self._threads:
            thread.join(5)
        return not any(thread.is_alive() for thread in self._threads)


def give(queue: FifoQueue | BatchQueue, giver: int) -> None:
    for number in range(500):
        queue.put(job(f"{giver}-{number}"))
        if number % 7 == 0:
            while len(queue):  # let the takers fall asleep now and then
                time.sleep(0)


@pytest.mark.parametrize("make", [FifoQueue, lambda: BatchQueue(3)])
async def test_nothing_is_lost_between_many_givers_and_takers(make: Callable[[], FifoQueue | BatchQueue]) -> None:
    queue = make()
    takers = Takers(queue, 1500)
    givers = [asyncio.create_task(asyncio.to_thread(give, queue, giver)) for giver in range(2)]
    for number in range(500):
        queue.put(job(f"loop-{number}"))
        if number % 5 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*givers)
    assert await asyncio.to_thread(takers.all_taken.wait, 20)
    assert takers.end()
    assert len(set(takers.taken)) == len(takers.taken) == 1500


def test_a_loop_that_has_ended_does_not_keep_requests() -> None:
    queue = FifoQueue()
    taken: list[list[Job] | None] = []
    taker = threading.Thread(target=lambda: taken.extend(iter(queue.take, None)), daemon=True)
    taker.start()
    asleep(queue)
    first, second = job("1"), job("2")

    async def give_and_end() -> None:
        queue.put(first)

    for _ in range(2):
        asyncio.run(give_and_end())
    queue.put(second)
    queue.close()
    taker.join(5)
    assert taken == [[first], [first], [second]]


@pytest.mark.parametrize("make", [bells.LockBell, bells._new])
def test_a_bell_wakes_its_thread_once_for_each_ring(make: Callable[[], bells.Bell]) -> None:
    bell = make()
    bell.ring()
    bell.wait()
    waiter = threading.Thread(target=bell.wait, daemon=True)
    waiter.start()
    waiter.join(0.02)
    assert waiter.is_alive()
    bell.ring()
    waiter.join(5)
    assert not waiter.is_alive()


def test_each_thread_has_a_bell_of_its_own() -> None:
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(bells.own_bell).result()
    assert bells.own_bell() is bells.own_bell()
    assert bells.own_bell() is not other


@pytest.mark.skipif(sys.platform != "linux", reason="eventfd")
def test_a_bell_closes_its_file_descriptor() -> None:
    bell = bells.EventBell()
    descriptor = bell._fd
    del bell
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


class Racing(deque[bells.Bell]):
    """The sleepers of a queue, with something that another thread does just before or after one joins them."""

    def __init__(self, before: Callable[[], None], after: Callable[[], None]) -> None:
        super().__init__()
        self._before, self._after = before, after

    def append(self, bell: bells.Bell) -> None:
        self._before()
        super().append(bell)
        self._after()


def nothing() -> None: ...


def on_a_thread(work: Callable[[], object]) -> object:
    """What `work` gives on a thread of its own, which is left behind if it never ends."""
    results: SimpleQueue[object] = SimpleQueue()
    threading.Thread(target=lambda: results.put(work()), daemon=True).start()
    return results.get(timeout=5)


def test_who_falls_asleep_sees_what_came_before_anyone_could_see_it_sleep() -> None:
    queue, late = FifoQueue(), job("late")
    queue._sleeping = Racing(lambda: queue.put(late), nothing)
    assert on_a_thread(queue.take) == [late]
    assert not queue._sleeping


def test_a_ring_that_comes_while_the_taker_turns_back_is_used_up() -> None:
    queue, late = FifoQueue(), job("late")
    queue._sleeping = Racing(nothing, lambda: queue.put(late))

    def take_twice() -> list[object]:
        bells._OWN.bell = bells.LockBell()
        return [queue.take(), queue.take()]

    assert on_a_thread(take_twice) == [[late], [late]]


def test_closing_while_a_taker_falls_asleep_ends_it() -> None:
    queue = FifoQueue()
    queue._sleeping = Racing(queue.close, nothing)
    assert on_a_thread(queue.take) is None
