"""A lifecycle whose loads, unloads and event loop move only when a test says so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, cast

import pytest
from attrs import define, field

from moorage._lifecycle import Handle, Manager, ServingMap
from moorage._lifecycle.pool import Job, Ticket
from moorage._lifecycle.serving import Slot
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.backend import VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import ModelConfig
from moorage.control import ModelId, Outcome
from moorage.errors import MoorageError
from moorage.hookspecs import StateChange
from moorage.storage import Storage

FOLLOWS = {
    "": {"LOADING", "UNAVAILABLE", "UNKNOWN"},
    "UNKNOWN": {"LOADING", "UNAVAILABLE", "UNLOADING"},
    "LOADING": {"READY", "UNLOADING", "UNAVAILABLE", "LOADING", "UNKNOWN"},
    "READY": {"READY", "UNLOADING"},
    "UNLOADING": {"UNAVAILABLE", "LOADING", "UNKNOWN"},
    "UNAVAILABLE": {"LOADING", "UNKNOWN", "UNAVAILABLE", "UNLOADING"},
}


def version_spec(name: str, version: int, fingerprint: str, namespace: str = "") -> VersionSpec:
    """A fingerprint "a#2" is of the same files and configuration as "a#1", with other instances."""
    files = VersionFiles(name, frozenset({"model.fake"}), version=version)
    parsed = ParsedConfig(ModelConfig(name=name))
    identity = fingerprint.partition("#")[0] if "#" in fingerprint else ""
    storage = cast("Storage", None)
    return VersionSpec(ModelId(name, namespace), version, parsed, files, fingerprint, storage, "repo", name, identity)


def model_spec(name: str, versions: Mapping[int, str], needs: tuple[str, ...] = (), namespace: str = "") -> ModelSpec:
    """A model with these versions (number -> fingerprint); it depends on `needs`."""
    specs = {version: version_spec(name, version, mark, namespace) for version, mark in versions.items()}
    return ModelSpec(ModelId(name, namespace), specs, frozenset(needs))


class FakePool:
    """Jobs wait until a test runs them."""

    def __init__(self, *_: Any) -> None:
        self.waiting: list[tuple[Ticket, Job]] = []
        self.stopped = False

    def submit(self, job: Job) -> Ticket:
        ticket: Ticket = Future()
        self.waiting.append((ticket, job))
        return ticket

    def stop(self) -> None:
        self.stopped = True

    def run(self, index: int = 0) -> None:
        ticket, job = self.waiting.pop(index)
        if ticket.running() or ticket.set_running_or_notify_cancel():
            job()

    def begin(self, index: int = 0) -> None:
        """The job runs from now on, and cannot be cancelled; `run` ends it."""
        ticket, _ = self.waiting[index]
        if not ticket.running() and not ticket.set_running_or_notify_cancel():
            del self.waiting[index]


@define(eq=False)
class FakeServable:
    spec: VersionSpec
    holders: int = 0
    closed: int = 0
    continues: FakeServable | None = None
    relieved: bool = False

    def close(self) -> None:
        assert not self.holders, "closed while a request holds it"
        self.closed += 1


class CountingMap(ServingMap[FakeServable]):
    """Counts the swaps that bring a model's versions in, and notes what each brought."""

    def __init__(self) -> None:
        super().__init__()
        self.swaps: list[tuple[ModelId, dict[int, str]]] = []

    def publish(self, model_id: ModelId, slots: Mapping[int, Slot[FakeServable]]) -> None:
        super().publish(model_id, slots)
        if slots:
            self.swaps.append((model_id, {version: slot.servable.spec.fingerprint for version, slot in slots.items()}))


@define(eq=False)
class Stage:
    """The lifecycle under test. Loads whose fingerprint is in `broken` raise."""

    retries: int = 0
    broken: set[str] = field(factory=set)
    error: BaseException = field(factory=lambda: RuntimeError("kaputt"))
    loaded: list[FakeServable] = field(factory=list)
    changes: list[StateChange] = field(factory=list)
    faults: list[str] = field(factory=list)
    serving: CountingMap = field(factory=CountingMap)
    pools: dict[str, FakePool] = field(factory=dict)
    loop: asyncio.AbstractEventLoop = field(factory=asyncio.new_event_loop)
    manager: Manager[FakeServable] = field(init=False)
    _announced: dict[tuple[ModelId, int], str] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.loop.set_exception_handler(lambda _, context: self.faults.append(repr(context)))
        self.manager = Manager(
            self.load,
            load_threads=2,
            on_change=self.note,
            serving=self.serving,
            retries=self.retries,
            pool=lambda name, _: self.pools.setdefault(name, FakePool()),
            renewer=self,
        )

    spec = staticmethod(model_spec)

    def load(self, spec: VersionSpec) -> FakeServable:
        if spec.fingerprint in self.broken:
            raise self.error
        servable = FakeServable(spec)
        self.loaded.append(servable)
        return servable

    def renew(self, old: FakeServable, spec: VersionSpec) -> FakeServable:
        assert not old.closed
        renewed = self.load(spec)
        renewed.continues = old
        return renewed

    def relieve(self, renewed: FakeServable) -> None:
        assert renewed.continues is not None
        assert self.serving.get(str(renewed.spec.id), renewed.spec.version) is renewed
        renewed.relieved = True

    def note(self, change: StateChange) -> None:
        """Good news is told when it is true, bad news before it is."""
        key = (change.model, change.version)
        before = self._announced.get(key, "")
        self._announced[key] = change.state
        self.changes.append(change)
        if change.state not in FOLLOWS[before]:
            self.faults.append(f"{change.state} was announced after {before}: {change}")
        if "READY" in {change.state, before} and not self.reachable(str(change.model), change.version):
            self.faults.append(f"{change} was announced while the version could not be reached")

    def reachable(self, name: str, version: int = -1) -> bool:
        try:
            self.serving.get(name, version)
        except MoorageError:
            return False
        return True

    def tick(self) -> None:
        """Let the event loop run until nothing is left to do."""

        async def rest() -> None:
            for _ in range(30):
                await asyncio.sleep(0)

        self.loop.run_until_complete(rest())
        assert not self.faults, self.faults

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.loop.create_task(coroutine)
        self.tick()
        return task

    def finish(self, pool: str = "load", index: int = 0) -> None:
        self.pools[pool].run(index)
        self.tick()

    def finish_all(self) -> None:
        while any(pool.waiting for pool in self.pools.values()):
            for pool in self.pools.values():
                while pool.waiting:
                    pool.run()
            self.tick()

    def want(self, name: str, versions: Mapping[int, str], *needs: str, force: bool = False) -> asyncio.Task[Outcome]:
        return self.start(self.manager.want(model_spec(name, versions, needs), force=force))

    def release(self, name: str) -> asyncio.Task[Outcome]:
        return self.start(self.manager.release(ModelId(name)))

    def have(self, name: str, versions: Mapping[int, str], *needs: str) -> Outcome:
        """Want it and let everything finish."""
        task = self.want(name, versions, *needs)
        self.finish_all()
        return task.result()

    def acquire(self, name: str, version: int = -1) -> Handle[FakeServable]:
        handle = self.serving.acquire(name, version)
        handle.servable.holders += 1
        return handle

    def let_go(self, handle: Handle[FakeServable]) -> None:
        handle.servable.holders -= 1
        handle.release()
        self.tick()

    def served(self, name: str) -> dict[int, str]:
        """Version -> fingerprint of what serves."""
        found = self.serving.models().get(ModelId(name), {})
        return {version: servable.spec.fingerprint for version, servable in found.items()}

    def lines(self, name: str = "") -> list[str]:
        """The index: "NAME/VERSION STATE REASON"."""
        lines = self.manager.index()
        return [f"{line.id}/{line.version} {line.state} {line.reason}".strip() for line in lines if name in {"", line.id.name}]

    def told(self, name: str) -> list[str]:
        return [f"{change.version} {change.state}" for change in self.changes if change.model.name == name]


@pytest.fixture
def make_stage() -> Iterator[Callable[..., Stage]]:
    made: list[Stage] = []

    def make(**settings: Any) -> Stage:
        made.append(Stage(**settings))
        return made[-1]

    yield make
    for stage in made:
        stage.loop.close()


@pytest.fixture
def spec() -> Callable[..., ModelSpec]:
    return model_spec


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage()


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Switch threads as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
