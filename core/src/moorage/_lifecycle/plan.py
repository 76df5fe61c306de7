"""What a newly wanted set of versions means for what is there: a pure decision."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, Generic, Protocol, TypeVar

from attrs import frozen

from moorage._lifecycle.transitions import State
from moorage._repository.spec import ModelSpec, VersionSpec

CARRIABLE: Final = frozenset({State.NEW, State.LOADING, State.STAGED, State.READY})
"""States from which a version can still come to serve."""

_UNDER_WAY: Final = CARRIABLE - {State.READY}


class Unit(Protocol):
    """One load of one version, as far as the decision looks at it."""

    @property
    def serial(self) -> int:
        """Grows with each load."""

    @property
    def version(self) -> int: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def identity(self) -> str:
        """The fingerprint without the instance groups; empty if that is not known."""

    @property
    def state(self) -> State: ...

    @property
    def claimed(self) -> bool:
        """Serves, or belongs to the rollout that runs; not when it was given up while it loaded."""


U = TypeVar("U", bound=Unit)


@frozen
class Renewal(Generic[U]):
    """A version that serves, and what it is to become without being loaded anew."""

    unit: U
    spec: VersionSpec


@frozen
class Plan(Generic[U]):
    """`carried` become part of the new rollout, `loads` are to be loaded for it, `dropped` are under way for nothing.

    `renewals` serve, and differ from what is wanted in their instance groups alone: they are to be continued with others.
    """

    carried: tuple[U, ...]
    loads: tuple[VersionSpec, ...]
    dropped: tuple[U, ...]
    renewals: tuple[Renewal[U], ...] = ()


def decide(units: Iterable[U], spec: ModelSpec, *, force: Collection[int] = (), renew: bool = False) -> Plan[U]:
    """Set the units of a model against the versions now wanted.

    A version whose fingerprint is unchanged is carried over, loading or serving, unless it is in `force`. Where two loads of
    it are there (a forced reload has begun), the newer counts. A failed version, or one that already drains, is loaded anew.
    With `renew`, one that serves and differs in its instance groups alone is renewed.
    """
    held = tuple(units)
    carried: list[U] = []
    loads: list[VersionSpec] = []
    renewals: list[Renewal[U]] = []
    for version in sorted(spec.versions):
        wanted = spec.versions[version]
        match = None if version in force else _match(held, wanted)
        like = _like(held, wanted) if renew and version not in force else None
        if match is not None:
            carried.append(match)
        elif like is not None:
            renewals.append(Renewal(like, wanted))
        else:
            loads.append(wanted)
    kept = {unit.serial for unit in carried}
    dropped = (unit for unit in held if unit.claimed and unit.state in _UNDER_WAY and unit.serial not in kept)
    return Plan(tuple(carried), tuple(loads), tuple(dropped), tuple(renewals))


def _match(units: Iterable[U], wanted: VersionSpec) -> U | None:
    fitting = (
        unit
        for unit in units
        if unit.version == wanted.version and unit.fingerprint == wanted.fingerprint and unit.state in CARRIABLE
    )
    return max(fitting, key=lambda unit: (unit.claimed, unit.serial), default=None)


def _like(units: Iterable[U], wanted: VersionSpec) -> U | None:
    """What serves and could become what is wanted by a change of its instances."""
    if not wanted.identity:
        return None
    serving = (unit for unit in units if unit.version == wanted.version and unit.state is State.READY)
    return next((unit for unit in serving if unit.identity == wanted.identity), None)
