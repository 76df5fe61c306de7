"""What control modes work with: it ties the repositories to the lifecycle."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from attrs import evolve, frozen

from moorage._control.forecast import Step, of_absent, of_served
from moorage._control.wishes import Reading, Wish, beside, orphans, resolve, without
from moorage._execution import Servable
from moorage._lifecycle.manager import Manager
from moorage._lifecycle.serving import ServingMap
from moorage._repository import Repositories, RepositorySnapshot
from moorage._repository.spec import ModelSpec
from moorage.control import LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import ErrorRecord, Internal, MoorageError, described

R = TypeVar("R")

logger = logging.getLogger(__name__)
AS_IT_STANDS = LoadOptions()


@frozen
class ControlSettings:
    """What the command line says to control modes."""

    initial_models: Sequence[str] = ()
    poll_seconds: float = 15.0
    settle_seconds: float = 2.0
    max_loaded_models: int = 0
    reader_threads: int = 4


class ModelControl:
    """The `ControlContext` of the server. All methods run on its event loop."""

    def __init__(
        self,
        repositories: Repositories,
        manager: Manager[Servable],
        serving: ServingMap[Servable],
        settings: ControlSettings,
    ) -> None:
        self._repositories = repositories
        self._manager = manager
        self._serving = serving
        self._settings = settings
        self._readers = ThreadPoolExecutor(settings.reader_threads, thread_name_prefix="repository")
        self._snapshot = RepositorySnapshot({})
        self._snapshot_ticket = 0
        self._tickets = itertools.count(1)
        self._wishes: dict[ModelId, Wish] = {}

    @property
    def initial_models(self) -> Sequence[str]:
        return self._settings.initial_models

    @property
    def poll_seconds(self) -> float:
        return self._settings.poll_seconds

    @property
    def settle_seconds(self) -> float:
        return self._settings.settle_seconds

    @property
    def max_loaded_models(self) -> int:
        return self._settings.max_loaded_models

    async def scan(self) -> Snapshot:
        ticket = next(self._tickets)
        snapshot = await self._on_reader(self._repositories.scan)
        if ticket > self._snapshot_ticket:  # else a look that began later has come back earlier
            self._snapshot, self._snapshot_ticket = snapshot, ticket
        return self._snapshot.public()

    async def look(self) -> Snapshot:
        """Look at the repositories only to know: what a later `want` loads stays what the last scan found."""
        return (await self._on_reader(self._repositories.scan)).public()

    async def plan(self, *, loaded: bool) -> list[Step]:
        """What loading everything as it lies in the repositories would do; with `loaded`, only what is wanted now."""
        snapshot = await self._on_reader(self._repositories.scan)
        steps = [Step("", None, "refuse", error.message) for error in snapshot.public().unreadable.values()]
        for model in sorted(self._wishes if loaded else {*snapshot.models, *self._wishes}):
            serving, name = self._manager.current(model), str(model)
            if model in snapshot.models:
                steps += of_served(name, await self._reading(snapshot, model, AS_IT_STANDS), serving)
            elif serving is not None:
                steps += of_absent(name, serving.versions, unreadable=bool(snapshot.unreadable))
        return steps

    async def doubt(self, model: ModelId, version: int) -> str:
        return await self._on_reader(self._repositories.doubt, self._snapshot, model, version)

    def wanted(self) -> frozenset[ModelId]:
        return frozenset(self._wishes)

    def made_of_requests(self) -> frozenset[ModelId]:
        """The wanted models whose files came with a load, not from a repository."""
        return frozenset(model for model, wish in self._wishes.items() if not wish.listed)

    def idle(self) -> Mapping[ModelId, int]:
        busy = self._serving.busy()
        return {
            model: max((version.statistics().last_inference_ms for version in versions.values()), default=0)
            for model, versions in self._serving.models().items()
            if model not in busy
        }

    async def want(self, models: Sequence[ModelId], options: LoadOptions | None = None) -> list[Outcome]:
        given = options or AS_IT_STANDS
        ticket = next(self._tickets)
        readings = await self._read(models, given)
        asked = frozenset(models)
        failed: dict[ModelId, Outcome] = {}
        specs: list[ModelSpec] = []
        for model, reading in readings.items():
            wish = self._note(model, reading, given if model in asked else AS_IT_STANDS, ticket, named=model in asked)
            if isinstance(wish.reading, ErrorRecord):
                failed[model] = Outcome(model, wish.reading)
            else:
                specs.append(wish.reading)
        force = {spec.id: given.versions or spec.versions for spec in specs if given.force and spec.id in asked}
        ended = {outcome.id: outcome for outcome in await self._manager.want_all(specs, force=force)}
        return [failed.get(model) or ended[model] for model in models]

    async def release(
        self, models: Sequence[ModelId], *, dependents: bool = False, versions: frozenset[int] = frozenset()
    ) -> list[Outcome]:
        if versions:
            return list(await asyncio.gather(*(self._release_versions(model, versions) for model in models)))
        going = [*models, *(self._orphans(models) if dependents else ())]
        for model in going:
            self._wishes.pop(model, None)
        return await self._manager.release_all(going)

    def close(self) -> None:
        """End the threads that read repositories."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def _read(self, models: Iterable[ModelId], options: LoadOptions) -> dict[ModelId, Reading]:
        """What is to be loaded of these models, and of those that they use and that neither serve nor are on their way."""
        readings: dict[ModelId, Reading] = {}
        ahead = list(dict.fromkeys(models))
        while ahead:
            found = await asyncio.gather(*(self._reading(self._snapshot, model, options) for model in ahead))
            readings.update(zip(ahead, found, strict=True))
            parts = (part for spec in found if isinstance(spec, ModelSpec) for part in self._parts(spec))
            ahead = [part for part in dict.fromkeys(parts) if part not in readings]
            options = AS_IT_STANDS
        return readings

    def _parts(self, spec: ModelSpec) -> list[ModelId]:
        """The models that an ensemble's steps mean, as far as they have to be loaded."""
        found = (resolve(name, spec.id, self._snapshot.models) for name in sorted(spec.dependencies))
        return [part for part in found if part is not None and not self._stands(part)]

    def _stands(self, model: ModelId) -> bool:
        return model in self._wishes and self._manager.current(model) is not None

    def _note(self, model: ModelId, reading: Reading, options: LoadOptions, ticket: int, *, named: bool) -> Wish:
        """Keep what is wanted of a model now, unless a later load has been read earlier; what counts is returned."""
        before = self._wishes.get(model)
        if before is not None and before.ticket > ticket:
            self._wishes[model] = before = evolve(before, named=named or before.named)
            return before
        if isinstance(reading, ModelSpec) and options.versions:
            reading = beside(self._manager.current(model), reading)
        wish = Wish(ticket, named or (before is not None and before.named), not options.files, reading)
        found = self._snapshot.models.get(model)
        if isinstance(reading, ErrorRecord):
            if found is None and wish.listed:
                return wish  # a name that is nowhere: nothing is kept of it
            if not named or found is None or found.problem is None:
                self._manager.record_failure(model, reading)
        self._wishes[model] = wish
        return wish

    async def _release_versions(self, model: ModelId, versions: frozenset[int]) -> Outcome:
        serving = self._manager.current(model)
        if serving is None or versions.isdisjoint(serving.versions):
            return Outcome(model, changed=False)
        left = without(serving, versions)
        if not left.versions:
            return (await self.release([model]))[0]
        self._wishes[model] = evolve(self._wishes[model], ticket=next(self._tickets), reading=left)
        outcome = await self._manager.want(left)
        if outcome.error is None:
            await self._manager.drained(model)
        return outcome

    def _orphans(self, models: Sequence[ModelId]) -> list[ModelId]:
        uses = {model: self._used(model, wish) for model, wish in self._wishes.items()}
        return orphans(models, uses, {model for model, wish in self._wishes.items() if wish.named})

    def _used(self, model: ModelId, wish: Wish) -> set[ModelId]:
        serving = self._manager.current(model)
        names = {name for spec in (serving, wish.spec) if spec is not None for name in spec.dependencies}
        found = (resolve(name, model, self._wishes) for name in names)
        return {part for part in found if part is not None}

    async def _reading(self, snapshot: RepositorySnapshot, model: ModelId, options: LoadOptions) -> Reading:
        try:
            return await self._on_reader(self._repositories.spec, snapshot, model, options)
        except MoorageError as error:
            return ErrorRecord.of(error)
        except Exception as error:  # a fault of ours with one model must not keep the others from being loaded
            logger.exception("reading model '%s' failed", model)
            return ErrorRecord.of(Internal(f"model '{model}': {described(error)}"))

    async def _on_reader(self, function: Callable[..., R], *args: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *args)
