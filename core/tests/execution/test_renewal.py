"""Instances that come and go while a version serves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import ClassVar

import pytest
from attrs import define, field

from moorage._execution import Loader, LoadSettings, Servable
from moorage._execution.priority_queue import PriorityQueue
from moorage._execution.queues import BatchQueue, FifoQueue, JobQueue
from moorage._execution.seats import Seat
from moorage._plugins import Registry
from moorage._repository.spec import VersionSpec
from moorage._storage import LocalStorage
from moorage.backend import Backend, Instance, LoadContext, LoadedModel, Placement, VersionFiles
from moorage.config import parse_text
from moorage.config.schema import DynamicBatching, ModelConfig
from moorage.control import ModelId
from moorage.errors import ModelError, MoorageError, Unavailable
from moorage.types import InferRequest, InferResponse, Job


@define(eq=False)
class World:
    """What the instances of the test's backend have done. Requests wait until `going_on` is set."""

    started: list[str] = field(factory=list)
    closed: list[str] = field(factory=list)
    answered: list[str] = field(factory=list)
    going_on: threading.Event = field(factory=threading.Event)
    busy: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))
    broken: set[str] = field(factory=set)

    def loader(self) -> Loader:
        world = self

        class Fake(Backend):
            name: ClassVar[str] = "fake"
            default_model_filename: ClassVar[str] = "model"

            def load(self, context: LoadContext) -> LoadedModel:
                world.started.append("model")
                return FakeModel(world)

        self.going_on.set()
        return Loader(Registry(backends={"fake": Fake}), LoadSettings())


class FakeModel(LoadedModel):
    def __init__(self, world: World) -> None:
        self.world = world

    def instance(self, placement: Placement) -> Instance:
        if placement.name in self.world.broken:
            raise ValueError("no room left")
        self.world.started.append(placement.name)
        return FakeInstance(self.world, placement.name)

    def close(self) -> None:
        self.world.closed.append("model")


class FakeInstance(Instance):
    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name

    def execute(self, jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        self.world.busy.release()
        assert self.world.going_on.wait(5)
        self.world.answered.append(self.name)
        return [InferResponse([]) for _ in jobs]

    def close(self) -> None:
        self.world.closed.append(self.name)


class Answer:
    def __init__(self) -> None:
        self.over = threading.Event()
        self.error: MoorageError | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        self.over.set()

    def fail(self, error: MoorageError) -> None:
        self.error = error
        self.over.set()

    def complete(self) -> None:
        self.over.set()


def ask(servable: Servable) -> Answer:
    answer = Answer()
    servable.submit(InferRequest("m", {}), answer)
    return answer


def answered(servable: Servable) -> bool:
    answer = ask(servable)
    return answer.over.wait(5) and answer.error is None


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def spec(tmp_path: Path) -> Callable[[str], VersionSpec]:
    (tmp_path / "1").mkdir()
    (tmp_path / "1/model").touch()

    def make(groups: str) -> VersionSpec:
        return VersionSpec(
            id=ModelId("m"),
            version=1,
            parsed=parse_text(f'name: "m" backend: "fake" {groups}'),
            files=VersionFiles("m", frozenset({"model"}), tmp_path / "1", tmp_path, 1),
            fingerprint=groups,
            storage=LocalStorage(),
            repository=str(tmp_path.parent),
            folder=tmp_path.name,
        )

    return make


def groups(*counts: int) -> str:
    return " ".join(f"instance_group {{ count: {count} kind: KIND_CPU }}" for count in counts)


def take_over(loader: Loader, old: Servable, spec: VersionSpec) -> Servable:
    new = loader.renew(old, spec)
    loader.relieve(new)
    old.close()
    return new


def test_instances_are_added_beside_those_that_stay(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    old = loader(spec(groups(1)))
    assert answered(old)
    new = take_over(loader, old, spec(groups(3)))
    assert world.started == ["model", "m_0_0", "m_0_1", "m_0_2"]
    assert world.closed == []
    assert new.config.instance_group[0].count == new.shown.instance_group[0].count == 3
    world.going_on.clear()
    asked = [ask(new) for _ in range(3)]
    assert all(world.busy.acquire(timeout=5) for _ in range(4)), "three at a time, after the one before"
    world.going_on.set()
    assert all(answer.over.wait(5) for answer in asked)
    assert new.statistics().success.count == 4
    new.close()
    assert sorted(world.closed[:3]) == ["m_0_0", "m_0_1", "m_0_2"]
    assert world.closed[3:] == ["model"]


def test_instances_that_are_not_wanted_any_more_end(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    new = take_over(loader, loader(spec(groups(3))), spec(groups(1)))
    assert sorted(world.closed) == ["m_0_1", "m_0_2"]
    assert answered(new)
    assert world.answered == ["m_0_0"]
    new.close()
    assert world.closed[2:] == ["m_0_0", "model"]


def test_instances_end_at_the_swap_not_when_the_last_request_of_old_has_ended(
    world: World, spec: Callable[[str], VersionSpec]
) -> None:
    loader = world.loader()
    old = loader(spec(groups(2)))
    new = loader.renew(old, spec(groups(1)))
    end = threading.Thread(target=old.members[1].thread.stop, daemon=True)
    loader.relieve(new)
    end.start()
    end.join(5)
    assert world.closed == ["m_0_1"]
    old.close()
    new.close()


def test_a_group_that_is_another_one_gets_instances_of_its_own(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    named = 'instance_group { name: "other" count: 1 kind: KIND_CPU }'
    new = take_over(loader, loader(spec(groups(1))), spec(named))
    assert world.started == ["model", "m_0_0", "other_0"]
    assert world.closed == ["m_0_0"]
    assert answered(new)
    new.close()


def test_new_instances_wait_for_the_swap(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    old = loader(spec(groups(1)))
    new = loader.renew(old, spec(groups(2)))
    world.going_on.clear()
    asked = [ask(old), ask(old)]
    assert world.busy.acquire(timeout=5)
    assert not world.busy.acquire(timeout=0.05), "the second request waits for the first"
    loader.relieve(new)
    assert world.busy.acquire(timeout=5)
    world.going_on.set()
    assert all(answer.over.wait(5) for answer in asked)
    old.close()
    new.close()


def test_a_change_that_is_given_up_leaves_all_as_it_was(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    old = loader(spec(groups(1)))
    loader.renew(old, spec(groups(2))).close()
    assert world.closed == ["m_0_1"]
    assert answered(old)
    old.close()
    assert world.closed == ["m_0_1", "m_0_0", "model"]


def test_an_instance_that_cannot_be_made_leaves_all_as_it_was(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    old = loader(spec(groups(1)))
    world.broken.add("m_0_2")
    with pytest.raises(ModelError, match="'m_0_2': ValueError: no room left"):
        loader.renew(old, spec(groups(3)))
    assert world.closed == ["m_0_1"]
    assert answered(old)
    old.close()
    assert world.closed[-1] == "model"


def test_what_is_unloaded_cannot_be_continued(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    old = loader(spec(groups(1)))
    old.close()
    with pytest.raises(Unavailable, match="model 'm' version 1"):
        loader.renew(old, spec(groups(2)))


def test_the_model_is_kept_while_one_of_its_servables_is_left(world: World, spec: Callable[[str], VersionSpec]) -> None:
    loader = world.loader()
    first = loader(spec(groups(2)))
    second = loader.renew(first, spec(groups(1)))
    loader.relieve(second)
    third = loader.renew(second, spec(groups(1, 1)))
    loader.relieve(third)
    second.close()
    third.close()
    assert "model" not in world.closed
    assert answered(first), "a request that came before all that"
    first.close()
    assert world.closed[-1] == "model"
    assert len(world.closed) == 4


def batching() -> PriorityQueue:
    return PriorityQueue(ModelConfig(name="m", max_batch_size=4), DynamicBatching())


@pytest.mark.parametrize("make", [FifoQueue, lambda: BatchQueue(4), batching], ids=["fifo", "batch", "priority"])
@pytest.mark.parametrize("rounds", range(5))
def test_a_seat_is_left_while_the_others_go_on(make: Callable[[], JobQueue], rounds: int) -> None:
    queue = make()
    seats = [Seat(queue) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        takers = [pool.submit(seat.take) for seat in seats]
        for index in (rounds % 3, (rounds + 1) % 3):
            seats[index].leave()
            assert takers[index].result(5) is None
        job = Job(InferRequest("m", {}), Answer())
        queue.put(job)
        assert takers[(rounds + 2) % 3].result(5) == [job]
        assert seats[rounds % 3].take() is None


@pytest.mark.parametrize("make", [FifoQueue, lambda: BatchQueue(4), batching], ids=["fifo", "batch", "priority"])
def test_no_request_is_forgotten_while_seats_come_and_go(make: Callable[[], JobQueue]) -> None:
    queue, count = make(), 300
    taken: list[Job] = []

    def work(seat: Seat) -> None:
        while (jobs := seat.take()) is not None:
            taken.extend(jobs)

    with ThreadPoolExecutor(16) as pool:
        stays = pool.submit(work, Seat(queue))
        passing: list[Seat] = []
        for number in range(count):
            if number % 10 == 0:
                passing.append(Seat(queue, waiting=number % 20 == 0))
                pool.submit(work, passing[-1])
            queue.put(Job(InferRequest("m", {}), Answer()))
            if number % 10 == 5:
                passing[-1].leave()
        queue.close()
        stays.result(10)
    assert len(taken) == count
