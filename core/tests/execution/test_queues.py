"""Queues: order, batches, the end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
