"""How a rollout goes on, decided from the states of its versions: all or none."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Set
from typing import Generic

from attrs import frozen

from moorage._lifecycle.plan import U
from moorage._lifecycle.transitions import State
from moorage._repository.spec import ModelSpec


class Verdict(enum.Enum):
    """What is to be done with a rollout."""

    WAIT = "wait"
    SWAP = "swap"
    FAIL = "fail"


def verdict(states: Iterable[State]) -> Verdict:
    """One failed version fails the rollout at once; it takes over when every version is loaded."""
    seen = frozenset(states)
    if State.FAILED in seen:
        return Verdict.FAIL
    return Verdict.SWAP if seen <= {State.STAGED, State.READY} else Verdict.WAIT


@frozen
class Exchange(Generic[U]):
    """What one swap of the serving map brings in and takes out."""

    enter: tuple[U, ...]
    retire: tuple[U, ...]

    @property
    def empty(self) -> bool:
        return not self.enter and not self.retire


def exchange(rollout: Mapping[int, U], units: Iterable[U]) -> Exchange[U]:
    """The swap of a rollout (version -> unit) that is loaded, among all units of its model."""
    chosen = {unit.serial for unit in rollout.values()}
    return Exchange(
        tuple(unit for unit in rollout.values() if unit.state is State.STAGED),
        tuple(unit for unit in units if unit.state is State.READY and unit.serial not in chosen),
    )


def joins(running: ModelSpec, running_force: Set[int], spec: ModelSpec, force: Set[int]) -> bool:
    """Whether a want asks for no more than the rollout that already runs, which must force at least the same versions."""
    if not force <= running_force:
        return False
    return running.dependencies == spec.dependencies and _fingerprints(running) == _fingerprints(spec)


def _fingerprints(spec: ModelSpec) -> dict[int, str]:
    return {version: wanted.fingerprint for version, wanted in spec.versions.items()}
