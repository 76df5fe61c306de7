"""The records of the lifecycle. The event loop owns them all."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from attrs import define, field

from moorage._lifecycle.pool import Servable, Ticket
from moorage._lifecycle.serving import Slot
from moorage._lifecycle.transitions import State, check
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.control import ModelId, Outcome
from moorage.errors import ErrorRecord

S = TypeVar("S", bound=Servable)

UNLOADED = "unloaded"
"""The reason of a version that was unloaded as wanted."""


@define(eq=False)
class Unit(Generic[S]):
    """One load of one version."""

    serial: int
    id: ModelId
    version: int
    fingerprint: str
    spec: VersionSpec | None
    state: State = State.NEW
    reason: str = ""
    uses: frozenset[str] = frozenset()
    """Names of the models that it needs while it serves."""
    claimed: bool = True
    error: ErrorRecord | None = None
    """Why it failed."""
    fate: str = UNLOADED
    """The reason that is shown when it is unloaded."""
    attempts: int = 0
    ticket: Ticket | None = None
    slot: Slot[S] | None = None
    donor: Unit[S] | None = None
    """What it continues with other instances, until it serves."""

    @property
    def identity(self) -> str:
        return self.spec.identity if self.spec is not None else ""

    def enter(self, state: State, reason: str = "") -> None:
        """The one place where a state changes; raises IllegalChange."""
        check(self.state, state)
        self.state, self.reason = state, reason
        if state.ended:
            self.claimed, self.spec, self.ticket, self.slot, self.donor = False, None, None, None, None


@define(eq=False)
class Rollout(Generic[S]):
    """One set of versions on its way to serving. `result` is passed on to the rollout that supersedes this one."""

    generation: int
    spec: ModelSpec
    force: frozenset[int]
    """Versions that are loaded although nothing has changed."""
    units: dict[int, Unit[S]]
    result: asyncio.Future[Outcome]
    started: bool = False
    """The models it depends on serve, its loads have begun."""


@define(eq=False)
class Departure(Generic[S]):
    """Somebody waits until these units are gone."""

    units: set[Unit[S]]
    result: asyncio.Future[Outcome]


@define(eq=False)
class Model(Generic[S]):
    """All that is known of one model."""

    id: ModelId
    generation: int = 0
    """Number of the latest set of versions."""
    wanted: ModelSpec | None = None
    rollout: Rollout[S] | None = None
    units: list[Unit[S]] = field(factory=list)
    """Those in memory, and of each version the last that ended."""
    blocked: bool = False
    """Wanted, but kept from serving by a part: tried again when a part comes up."""
    failure: ErrorRecord | None = None
    """Why the last rollout failed."""
    problem: ErrorRecord | None = None
    """Why there was nothing to roll out."""
    departures: list[Departure[S]] = field(factory=list)
    announced: dict[int, tuple[str, str]] = field(factory=dict)

    @property
    def ready(self) -> list[Unit[S]]:
        return [unit for unit in self.units if unit.state is State.READY]

    @property
    def live(self) -> list[Unit[S]]:
        return [unit for unit in self.units if not unit.state.ended]

    @property
    def uses(self) -> frozenset[str]:
        """Names of the models it depends on: by the set that it tries, else by what serves, else by what it would try again."""
        ready = self.ready
        if self.rollout is None and ready:
            return frozenset().union(*(unit.uses for unit in ready))
        return self.wanted.dependencies if self.wanted else frozenset()

    @property
    def current(self) -> ModelSpec | None:
        """The set of versions that is on its way, else the one that serves; None if there is neither."""
        if self.rollout is not None:
            return self.rollout.spec
        versions = {unit.version: unit.spec for unit in self.ready if unit.spec is not None}
        return ModelSpec(self.id, versions, self.uses) if versions else None

    @property
    def idle(self) -> bool:
        """There is nothing to unload, nothing to call off and nothing to forgive."""
        failed = self.failure or self.problem or any(unit.state is State.FAILED for unit in self.units)
        return self.wanted is None and not failed and not self.live

    def forget_ended(self) -> None:
        """Of the units of a version that have ended, keep only the last."""
        last = {unit.version: unit for unit in self.units if unit.state.ended}
        self.units = [unit for unit in self.units if not unit.state.ended or last[unit.version] is unit]
