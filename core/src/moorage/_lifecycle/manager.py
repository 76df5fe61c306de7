"""What the rest of the server asks of the lifecycle."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Generic

from moorage._lifecycle.conductor import Conductor
from moorage._lifecycle.pool import Pool, Renewer, ThreadPool
from moorage._lifecycle.records import S
from moorage._lifecycle.serving import ServingMap
from moorage._lifecycle.status import Announcer, VersionStatus, statuses
from moorage._lifecycle.transitions import State
from moorage._lifecycle.works import Works
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage.control import ModelId, Outcome
from moorage.errors import ErrorRecord
from moorage.hookspecs import StateChange

logger = logging.getLogger(__name__)

_NOTHING: Final[Mapping[ModelId, Collection[int]]] = MappingProxyType({})


class Manager(Generic[S]):
    """Loads, replaces and unloads models as they are wanted.

    `load` runs on one of `load_threads` threads and may raise anything; a failed load is tried again `retries` times.
    `renewer` changes the instances of versions that serve; without one, every change is a load. `on_change` is called on the
    event loop. All methods are for the event loop on which the first of them was awaited.
    """

    def __init__(
        self,
        load: Callable[[VersionSpec], S],
        *,
        load_threads: int,
        unload_threads: int = 2,
        on_change: Callable[[StateChange], None],
        retries: int = 0,
        serving: ServingMap[S],
        pool: Callable[[str, int], Pool] = ThreadPool,
        renewer: Renewer[S] | None = None,
    ) -> None:
        self._works = Works(load, pool("load", load_threads), pool("unload", unload_threads), renewer)
        self._conductor = Conductor(self._works, Announcer(on_change, serving), serving, retries)
        self._models = self._conductor.models

    async def want(self, spec: ModelSpec, *, force: bool | Collection[int] = False) -> Outcome:
        """Have exactly these versions of a model served; returns when they serve or have failed.

        What serves already keeps serving until all of them are loaded, and for good if one fails. Unchanged versions are left
        alone unless `force` names them, or is true. If the model is wanted differently meanwhile, the outcome is that of the
        later want. Models that were kept from serving by the lack of this one come back before this returns.
        """
        return await asyncio.shield(self._conductor.aspire(spec, force=force))

    async def want_all(
        self, specs: Sequence[ModelSpec], *, force: Mapping[ModelId, Collection[int]] = _NOTHING
    ) -> list[Outcome]:
        """`want` for several models at once, in any order: each waits for those it depends on."""
        results = [self._conductor.aspire(spec, force=force.get(spec.id, ())) for spec in specs]
        return [await asyncio.shield(result) for result in results]

    async def release(self, model_id: ModelId) -> Outcome:
        """Have a model unloaded; returns when its requests are done and it is closed.

        Models that depend on it are unloaded first and come back when it does. `changed` is false if there was nothing to
        unload; the outcome is an error only if the model was wanted again before it had gone.
        """
        return await asyncio.shield(self._conductor.depart(model_id))

    async def release_all(self, ids: Iterable[ModelId]) -> list[Outcome]:
        """`release` for several models at once, in any order: dependents go before what they depend on."""
        results = [self._conductor.depart(model_id) for model_id in ids]
        return [await asyncio.shield(result) for result in results]

    async def drained(self, model_id: ModelId) -> None:
        """Wait until the versions of a model that have left the serving map are closed."""
        model = self._models.find(model_id)
        if model is not None:
            going = [unit for unit in model.live if unit.state in {State.DRAINING, State.UNLOADING}]
            await asyncio.shield(self._conductor.departure(model, going))

    def record_failure(self, model_id: ModelId, error: ErrorRecord) -> None:
        """Keep why a model could not even be tried (a configuration that does not parse, no version). What serves stays."""
        logger.error("model '%s' was not loaded: %s", model_id, error.message)
        self._models.ensure(model_id).problem = error

    def index(self) -> list[VersionStatus]:
        """How every version stands that was ever tried, by name and version.

        What serves is READY, even if its replacement has failed: see `failure`.
        """
        return [line for model in self._models for line in statuses(model)]

    def failure(self, model_id: ModelId) -> ErrorRecord | None:
        """Why the last try to load a model failed, even if an older set serves; None if it did not or it was released."""
        model = self._models.find(model_id)
        return (model.problem or model.failure) if model else None

    def current(self, model_id: ModelId) -> ModelSpec | None:
        """The versions of a model that are on their way, else those that serve; None if there are neither."""
        model = self._models.find(model_id)
        return model.current if model else None

    def coming(self) -> frozenset[ModelId]:
        """The models that are being loaded and have no version that serves yet."""
        return frozenset(model.id for model in self._models if model.rollout and not model.ready)

    def failed(self) -> frozenset[ModelId]:
        """The models that failed and have no version that serves, at present."""
        return frozenset(model.id for model in self._models if (model.problem or model.failure) and not model.ready)

    async def close(self, timeout: float) -> bool:  # noqa: ASYNC109  what is left goes on when the time is over
        """Unload everything, dependents first. False if requests still ran after `timeout` seconds.

        What they hold then stays loaded. A load or close that hangs is not waited for any longer, either.
        """
        self._conductor.closing = True
        departures = [self._conductor.depart(model.id) for model in self._models]
        if departures:
            await asyncio.wait(departures, timeout=timeout)
        left = [unit for model in self._models for unit in model.live]
        for unit in left:
            logger.warning("model '%s' version %d is still %s", unit.id, unit.version, unit.state.name)
        if not left:
            self._works.stop()
        return not any(unit.slot and unit.slot.held for unit in left)
