"""ON_DEMAND: a model is loaded when the first request for it comes; the least recently used one makes room."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from moorage._control.explicit import Explicit
from moorage._logging import get_logger
from moorage.control import ControlContext, LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import ErrorRecord, NotFound, RequestError, Unavailable

log = get_logger("moorage.control")

FRESH_SECONDS: Final = 1.0
"""How old a look at the repositories may be to answer a request."""
RETRY_SECONDS: Final = 10.0
"""How long a model that could not be loaded, and whose files are the same, is not tried again for a request."""


@frozen
class _Failure:
    """Why a model could not be loaded, and as what."""

    error: ErrorRecord
    fingerprint: str
    until: float


class OnDemand(Explicit):
    """Clients may load and unload as in EXPLICIT, too; what they load counts and goes as any other model."""

    name = "on_demand"

    def __init__(self, context: ControlContext) -> None:
        super().__init__(context)
        self._coming: dict[str, asyncio.Task[None]] = {}
        self._failures: dict[ModelId, _Failure] = {}
        self._order: dict[ModelId, None] = {}
        """What has been loaded, the latest at the end: which of two models that were never asked goes first."""
        self._arriving: set[ModelId] = set()
        self._room = asyncio.Lock()
        self._snapshot = Snapshot({})
        self._looked = -math.inf

    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        self._snapshot = await self.context.scan()
        ids = self._ids(self._snapshot, name)
        await self._make_room(ids)
        try:
            outcomes = await super().load(name, options)
        finally:
            self._arriving.difference_update(ids)
        for outcome in outcomes:
            self._note(outcome)
        return outcomes

    async def start(self) -> list[Outcome]:
        outcomes = await super().start()
        for outcome in outcomes:
            self._note(outcome)
        return outcomes

    async def summon(self, name: str) -> None:
        task = self._coming.get(name)
        if task is None:
            task = self._coming[name] = asyncio.create_task(self._bring(name))
            task.add_done_callback(lambda _: self._coming.pop(name, None))
        await asyncio.shield(task)

    async def _bring(self, name: str) -> None:
        found = await self._find(name)
        self._refuse_again(found)
        await self._make_room([found])
        log.info("a request has asked for a model", model=str(found))
        try:
            (outcome,) = await self.context.want([found])
        finally:
            self._arriving.discard(found)
        self._note(outcome)
        if outcome.error is not None:
            raise _refusal(found, outcome.error)

    def _refuse_again(self, model: ModelId) -> None:
        failure = self._failures.get(model)
        if failure is None or time.monotonic() > failure.until:
            return
        if failure.fingerprint == self._snapshot.models[model].fingerprint:
            raise _refusal(model, failure.error)

    async def _find(self, name: str) -> ModelId:
        """The model that a request's name means, by a look that is not older than it need be."""
        if time.monotonic() - self._looked > FRESH_SECONDS:
            self._snapshot = await self.context.scan()
            self._looked = time.monotonic()
        ids = self._ids(self._snapshot, name)
        if len(ids) == 1:
            return ids[0]
        if ids:
            raise RequestError(f"model name '{name}' is ambiguous: ask for one of {', '.join(map(str, sorted(ids)))}")
        raise NotFound(f"model '{name}' is in no model repository; the repository index lists what there is")

    async def _make_room(self, coming: list[ModelId]) -> None:
        """Unload the models that were not asked for the longest time, until these models are not too many."""
        most = self.context.max_loaded_models
        async with self._room:
            while most and len(self._loaded() | set(coming)) > most:
                victim = least_recent(self._order, self.context.idle(), coming)
                if victim is None:
                    raise Unavailable(
                        f"as many models as may be ({most}) are loaded and in use; try again later, or start the server with a "
                        "greater --max-loaded-models"
                    )
                log.info("a model makes room for another", model=str(victim))
                self._order.pop(victim, None)
                await self.context.release([victim], dependents=True)
            self._arriving.update(coming)

    def _loaded(self) -> frozenset[ModelId]:
        return (self.context.wanted() - self._failures.keys()) | self._arriving

    def _note(self, outcome: Outcome) -> None:
        self._order.pop(outcome.id, None)
        self._failures.pop(outcome.id, None)
        if outcome.error is None:
            self._order[outcome.id] = None
        elif outcome.id in self._snapshot.models:
            fingerprint = self._snapshot.models[outcome.id].fingerprint
            self._failures[outcome.id] = _Failure(outcome.error, fingerprint, time.monotonic() + RETRY_SECONDS)


def _refusal(model: ModelId, error: ErrorRecord) -> Unavailable:
    return Unavailable(f"model '{model}' cannot be loaded: {error.message}")


def least_recent(order: Mapping[ModelId, None], idle: Mapping[ModelId, int], keep: list[ModelId]) -> ModelId | None:
    """The idle model whose last request is the longest ago; among those that were never asked, the one loaded first."""
    known = {model: place for place, model in enumerate(order)}
    choices = [model for model in idle if model in known and model not in keep]
    return min(choices, key=lambda model: (idle[model], known[model]), default=None)
