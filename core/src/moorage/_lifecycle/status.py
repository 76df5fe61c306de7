"""What others see of a model's versions: the index, and the announced changes of state."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Generic

from attrs import frozen

from moorage._lifecycle.records import Model, S, Unit
from moorage._lifecycle.serving import ServingMap
from moorage._lifecycle.transitions import State
from moorage.control import ModelId
from moorage.hookspecs import StateChange

logger = logging.getLogger(__name__)


@frozen
class VersionStatus:
    """A line of the index. `version` is None for a model that failed before it had versions."""

    id: ModelId
    version: int | None
    state: str
    """UNKNOWN, LOADING, READY, UNLOADING or UNAVAILABLE."""
    reason: str = ""


def visible(units: Iterable[Unit[S]]) -> Unit[S]:
    """The unit that stands for its version: what serves, else the newest in memory that is of use, else the last that ended."""
    return max(units, key=lambda unit: (unit.state is State.READY, unit.claimed, not unit.state.ended, unit.serial))


def statuses(model: Model[S]) -> Iterator[VersionStatus]:
    """The lines of one model, ascending by version."""
    if model.problem is not None and not model.ready:
        yield VersionStatus(model.id, None, State.FAILED.wire, model.problem.message)
    for version in sorted({unit.version for unit in model.units}):
        unit = visible(unit for unit in model.units if unit.version == version)
        yield VersionStatus(model.id, version, unit.state.wire, unit.reason if unit.state.ended else "")


class Announcer(Generic[S]):
    """Tells observers and the serving map how versions stand. One that is replaced by a new load of itself stays READY."""

    def __init__(self, on_change: Callable[[StateChange], None], serving: ServingMap[S]) -> None:
        self._on_change = on_change
        self._serving = serving

    def entered(self, model: Model[S], unit: Unit[S]) -> None:
        """A unit has changed its state. Entering READY is always told, everything else if the version looks different now."""
        lines = list(statuses(model))
        idle = {
            line.version: line.reason or line.state.lower()
            for line in lines
            if line.version is not None and line.state != "READY"
        }
        self._serving.describe(model.id, idle)
        line = next(line for line in lines if line.version == unit.version)
        seen = (line.state, line.reason)
        if unit.state is State.READY or model.announced.get(unit.version) != seen:
            model.announced[unit.version] = seen
            self._tell(StateChange(model.id, unit.version, line.state, line.reason))

    def _tell(self, change: StateChange) -> None:
        try:
            self._on_change(change)
        except Exception:
            logger.exception("an observer failed on %s", change)
