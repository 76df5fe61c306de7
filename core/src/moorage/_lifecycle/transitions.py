"""The states of a loaded version, the changes that are legal, and what the wire calls them.

NEW ──> LOADING ──> STAGED ──> READY ──> DRAINING ──> UNLOADING ──> UNLOADED

STAGED may go to UNLOADING at once, NEW and LOADING to FAILED or, given up before they were started, to UNLOADED.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class State(enum.Enum):
    """Where a version stands."""

    NEW = "NEW"
    """Wanted; waits for the models that it depends on."""
    LOADING = "LOADING"
    STAGED = "STAGED"
    """Loaded; waits until all versions of its rollout are."""
    READY = "READY"
    DRAINING = "DRAINING"
    """Out of the serving map; requests that hold it still run."""
    UNLOADING = "UNLOADING"
    UNLOADED = "UNLOADED"
    FAILED = "FAILED"

    @property
    def wire(self) -> str:
        """UNKNOWN, LOADING, READY, UNLOADING or UNAVAILABLE."""
        return _WIRE[self]

    @property
    def ended(self) -> bool:
        """Nothing is held in memory any more."""
        return self in _ENDED


_WIRE: Final[Mapping[State, str]] = MappingProxyType(
    {
        State.NEW: "UNKNOWN",
        State.LOADING: "LOADING",
        State.STAGED: "LOADING",
        State.READY: "READY",
        State.DRAINING: "UNLOADING",
        State.UNLOADING: "UNLOADING",
        State.UNLOADED: "UNAVAILABLE",
        State.FAILED: "UNAVAILABLE",
    }
)

_ENDED: Final = frozenset({State.UNLOADED, State.FAILED})

LEGAL: Final[Mapping[State, frozenset[State]]] = MappingProxyType(
    {
        State.NEW: frozenset({State.LOADING, State.FAILED, State.UNLOADED}),
        State.LOADING: frozenset({State.STAGED, State.FAILED, State.UNLOADED}),
        State.STAGED: frozenset({State.READY, State.UNLOADING}),
        State.READY: frozenset({State.DRAINING}),
        State.DRAINING: frozenset({State.UNLOADING}),
        State.UNLOADING: frozenset({State.UNLOADED}),
        State.UNLOADED: frozenset(),
        State.FAILED: frozenset({State.UNLOADED}),
    }
)
"""Each state with the states that may follow it."""


class IllegalChange(AssertionError):
    """The lifecycle tried to leave its own rules: a bug in this package."""


def check(before: State, after: State) -> None:
    """Refuse a change that is not in the table."""
    if after not in LEGAL[before]:
        msg = f"a version cannot go from {before.value} to {after.value}"
        raise IllegalChange(msg)
