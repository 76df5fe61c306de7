"""Models whose repository failed while they were loaded: they are tried again, though nothing of them has changed."""

from __future__ import annotations

from typing import Final, NamedTuple

from moorage._control.watch import Decision
from moorage.control import ModelId, Outcome, Snapshot

LONGEST_PAUSE: Final = 600.0
"""Seconds."""


class _Retry(NamedTuple):
    failures: int
    due: float


class Retries:
    """Doubles the pause after each failure, from one poll on."""

    def __init__(self) -> None:
        self._waiting: dict[ModelId, _Retry] = {}

    def note(self, outcome: Outcome, now: float, poll: float) -> None:
        """A load has ended."""
        before = self._waiting.pop(outcome.id, None)
        if outcome.error is not None and outcome.error.passing:
            failures = before.failures + 1 if before is not None else 1
            pause = min(poll * 2 ** min(failures - 1, 30), max(poll, LONGEST_PAUSE))
            self._waiting[outcome.id] = _Retry(failures, now + pause)

    def due(self, now: float, decision: Decision, snapshot: Snapshot) -> list[ModelId]:
        """The models to be tried now: those that have not changed meanwhile, and so are not loaded or unloaded anyway.

        What is unreadable now, or not at rest, waits for a later look. What is returned is not due again before it is noted.
        """
        for model in [model for model in self._waiting if model in decision.wanted or model in decision.gone]:
            del self._waiting[model]
        ready = [
            model
            for model, retry in self._waiting.items()
            if retry.due <= now and model in snapshot.models and model not in decision.memory.sights
        ]
        for model in ready:
            self._waiting[model] = self._waiting[model]._replace(due=float("inf"))
        return sorted(ready)
