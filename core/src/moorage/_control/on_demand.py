"""ON_DEMAND: a model is loaded when the first request for it comes; the least recently used one makes room."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

from attrs import frozen

from moorage._control.explicit import Explicit
from moorage._logging import get_logger
from moorage.control import ControlContext, LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import Code, ErrorRecord, NotFound, RequestError, Unavailable

log = get_logger("moorage.control")

FRESH_SECONDS: Final = 1.0
"""How old a look at the repositories may be to answer a request."""
RETRY_SECONDS: Final = 10.0
"""How long a model that could not be loaded, and whose files are the same, is not tried again for a request."""
ROOM_SECONDS: Final = 10.0
"""How long what is to be loaded waits for a model that can make room, while all are in use."""
LOOK_SECONDS: Final = 0.02
"""How often it is looked whether one is out of use."""


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
        self._awaited: Counter[str] = Counter()
        """The names that requests wait for: what has been loaded for them stays until they have got it."""
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

    async def reload(self) -> list[Outcome]:
        async with self._room:  # what makes room meanwhile would be loaded again, and stay
            asked = {*self._order, *self._failures}
            outcomes = await super().reload()
            for outcome in outcomes:
                if outcome.error is None and outcome.id in asked:
                    self._failures.pop(outcome.id, None)
                    self._order.setdefault(outcome.id, None)
        return outcomes

    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        outcomes = await super().unload(name, dependents=dependents, versions=versions)
        wanted = self.context.wanted()
        self._order = {model: None for model in self._order if model in wanted}
        return outcomes

    async def summon(self, name: str) -> None:
        task = self._coming.get(name)
        if task is None:
            task = self._coming[name] = asyncio.create_task(self._bring(name))
            task.add_done_callback(lambda _: self._coming.pop(name, None))
        self._awaited[name] += 1
        try:
            await asyncio.shield(task)
        finally:  # the request goes on in this turn of the event loop, and holds the model before anybody can unload it
            self._awaited[name] -= 1
            self._awaited += Counter()  # without the names that nobody waits for

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
        """Unload the models that were not asked for the longest time, until these models are not too many.

        While all are in use it is waited for one, for some time. Raises Unavailable then.
        """
        most = self.context.max_loaded_models
        patient_until = time.monotonic() + ROOM_SECONDS
        if most and not self._loaded().issuperset(coming):
            async with self._room:
                while len(self._loaded() | set(coming)) > most:
                    victim = least_recent(self._order, self.context.idle(), self._kept(coming))
                    if victim is not None:
                        log.info("a model makes room for another", model=str(victim))
                        self._order.pop(victim, None)
                        await self.context.release([victim], dependents=True)
                    elif len(coming) <= most and time.monotonic() < patient_until:
                        await asyncio.sleep(LOOK_SECONDS)
                    else:
                        raise _full(most)
                self._arriving.update(coming)  # before another may count
        else:
            self._arriving.update(coming)

    def _kept(self, coming: list[ModelId]) -> set[ModelId]:
        """What must not make room, though it runs no request now."""
        awaited = {model for model in self._order if self._awaited.keys() & {model.name, str(model)}}
        return awaited | self._arriving | set(coming)

    def _loaded(self) -> frozenset[ModelId]:
        return (self.context.wanted() - self._failures.keys()) | self._arriving

    def _note(self, outcome: Outcome) -> None:
        if outcome.error is None:
            self._failures.pop(outcome.id, None)
            self._order.pop(outcome.id, None)
            self._order[outcome.id] = None
        elif outcome.error.code is Code.CANCELLED or outcome.id in self._order:
            return  # it was unloaded meanwhile, which says nothing about it; or what was loaded before serves as ever
        elif outcome.id in self._snapshot.models:
            fingerprint = self._snapshot.models[outcome.id].fingerprint
            self._failures[outcome.id] = _Failure(outcome.error, fingerprint, time.monotonic() + RETRY_SECONDS)


def _refusal(model: ModelId, error: ErrorRecord) -> Unavailable:
    return Unavailable(f"model '{model}' cannot be loaded: {error.message}")


def _full(most: int) -> Unavailable:
    return Unavailable(
        f"as many models as may be ({most}) are loaded and in use; try again later, or start the server with a greater "
        "--max-loaded-models"
    )


def least_recent(order: Mapping[ModelId, None], idle: Mapping[ModelId, int], keep: Collection[ModelId]) -> ModelId | None:
    """The idle model whose last request is the longest ago; among those that were never asked, the one loaded first."""
    known = {model: place for place, model in enumerate(order)}
    choices = [model for model in idle if model in known and model not in keep]
    return min(choices, key=lambda model: (idle[model], known[model]), default=None)
