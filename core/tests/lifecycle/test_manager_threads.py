"""The manager on real threads and a real event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from moorage._lifecycle import Manager, ServingMap
from moorage._lifecycle.pool import ThreadPool
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.control import ModelId
from moorage.errors import MoorageError
from moorage.hookspecs import StateChange

M = ModelId("m")


class Model:
    def __init__(self, closed: list[str], mark: str) -> None:
        self.closed = closed
        self.mark = mark

    def close(self) -> None:
        assert threading.current_thread().name.startswith("moorage-unload")
        self.closed.append(self.mark)
        self.mark = "closed"


def ignore(_: StateChange) -> None:
    return None


@pytest.mark.usefixtures("busy_threads")
async def test_requests_of_many_threads_while_the_model_is_replaced(spec: Callable[..., ModelSpec]) -> None:
    closed: list[str] = []
    serving: ServingMap[Model] = ServingMap()
    manager = Manager(lambda s: Model(closed, s.fingerprint), load_threads=3, on_change=ignore, serving=serving)
    await manager.want(spec("m", {1: "0"}))
    stop = threading.Event()
    wrong: list[str] = []

    def requests() -> None:
        while not stop.is_set():
            try:
                with serving.acquire("m") as handle:
                    if handle.servable.mark == "closed":
                        wrong.append("closed while it was held")
            except MoorageError as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=requests) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1, 20):
        outcome = await manager.want(spec("m", {number % 3 + 1: str(number)}))
        assert outcome.error is None
    stop.set()
    for thread in threads:
        thread.join(10)
    assert await manager.close(10)
    assert wrong == []
    assert sorted(closed, key=int) == [str(number) for number in range(20)]


async def test_system_exit_in_a_load_spares_the_pool(spec: Callable[..., ModelSpec]) -> None:
    def load(version: VersionSpec) -> Model:
        if version.fingerprint == "bad":
            raise SystemExit(1)
        return Model([], version.fingerprint)

    manager = Manager(load, load_threads=1, on_change=ignore, serving=ServingMap())
    outcome = await manager.want(spec("m", {1: "bad"}))
    assert outcome.error
    assert "SystemExit: 1" in outcome.error.message
    assert (await manager.want(spec("m", {1: "good"}))).error is None
    assert await manager.close(10)


async def test_close_returns_though_a_load_and_a_close_hang(spec: Callable[..., ModelSpec]) -> None:
    hang = threading.Event()

    class Stuck(Model):
        def close(self) -> None:
            hang.wait(30)

    def load(version: VersionSpec) -> Model:
        if version.fingerprint == "hang":
            hang.wait(30)
        return Stuck([], version.fingerprint)

    manager = Manager(load, load_threads=2, on_change=ignore, serving=ServingMap())
    await manager.want(spec("m", {1: "a"}))
    hanging = asyncio.ensure_future(manager.want(spec("n", {1: "hang"})))
    await asyncio.sleep(0)
    before = time.monotonic()
    assert await manager.close(0.05)
    assert time.monotonic() - before < 5
    assert (await hanging).error
    hang.set()
    assert await manager.close(10)


def test_loads_that_run_when_the_loop_goes_leave_nothing_behind(spec: Callable[..., ModelSpec]) -> None:
    started, go_on, done = threading.Event(), threading.Event(), threading.Event()

    class Late(Model):
        def close(self) -> None:
            done.set()

    def load(version: VersionSpec) -> Model:
        started.set()
        go_on.wait(30)
        return Late([], version.fingerprint)

    manager = Manager(load, load_threads=1, on_change=ignore, serving=ServingMap())

    async def main() -> None:
        wanting = asyncio.ensure_future(manager.want(spec("m", {1: "a"})))
        await asyncio.to_thread(started.wait, 30)
        wanting.cancel()

    asyncio.run(main())
    go_on.set()
    assert done.wait(30)


def test_the_pool_skips_cancelled_jobs_and_survives_failing_ones(caplog: pytest.LogCaptureFixture) -> None:
    pool = ThreadPool("test", 1)
    gate, last = threading.Event(), threading.Event()
    ran: list[str] = []

    def fail() -> None:
        gate.wait(30)
        raise SystemExit("no")

    running = pool.submit(fail)
    waiting = pool.submit(lambda: ran.append("cancelled"))
    assert waiting.cancel()
    pool.submit(last.set)
    pool.stop()
    gate.set()
    assert last.wait(30)
    assert ran == []
    assert not running.cancel()
    assert "a job of the test threads failed" in caplog.text
