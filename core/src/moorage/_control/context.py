"""What control modes work with: it ties the repositories to the lifecycle."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from attrs import frozen

from moorage._execution import Servable
from moorage._lifecycle.manager import Manager
from moorage._repository import Repositories, RepositorySnapshot
from moorage._repository.spec import ModelSpec
from moorage.control import LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import ErrorRecord, MoorageError

R = TypeVar("R")


@frozen
class ControlSettings:
    """What the command line says to control modes."""

    initial_models: Sequence[str] = ()
    poll_seconds: float = 15.0
    settle_seconds: float = 2.0
    reader_threads: int = 4


class ModelControl:
    """The `ControlContext` of the server. All methods run on its event loop."""

    def __init__(self, repositories: Repositories, manager: Manager[Servable], settings: ControlSettings) -> None:
        self._repositories = repositories
        self._manager = manager
        self._settings = settings
        self._readers = ThreadPoolExecutor(settings.reader_threads, thread_name_prefix="repository")
        self._snapshot: RepositorySnapshot | None = None
        self._wanted: set[ModelId] = set()

    @property
    def initial_models(self) -> Sequence[str]:
        return self._settings.initial_models

    @property
    def poll_seconds(self) -> float:
        return self._settings.poll_seconds

    @property
    def settle_seconds(self) -> float:
        return self._settings.settle_seconds

    async def scan(self) -> Snapshot:
        self._snapshot = await self._on_reader(self._repositories.scan)
        return self._snapshot.public()

    def wanted(self) -> frozenset[ModelId]:
        return frozenset(self._wanted)

    async def want(self, models: Sequence[ModelId], options: LoadOptions | None = None) -> list[Outcome]:
        specs = await asyncio.gather(*(self._spec(model, options) for model in models))
        force = options is not None and options.force
        return list(await asyncio.gather(*(self._want(m, s, force) for m, s in zip(models, specs, strict=True))))

    async def release(self, models: Sequence[ModelId], *, dependents: bool = False) -> list[Outcome]:
        self._wanted.difference_update(models)
        return list(await asyncio.gather(*(self._manager.release(model) for model in models)))

    def close(self) -> None:
        """End the threads that read repositories."""
        self._readers.shutdown(wait=False, cancel_futures=True)

    async def _want(self, model: ModelId, spec: ModelSpec | ErrorRecord, force: bool) -> Outcome:
        if isinstance(spec, ErrorRecord):
            if not self._is_known_problem(model):
                self._manager.record_failure(model, spec)
            return Outcome(model, spec)
        self._wanted.add(model)
        return await self._manager.want(spec, force=force)

    def _is_known_problem(self, model: ModelId) -> bool:
        """Whether the last scan says itself why the model cannot be loaded; names that are nowhere count, too."""
        found = self._snapshot.models.get(model) if self._snapshot is not None else None
        return found is None or found.problem is not None

    async def _spec(self, model: ModelId, options: LoadOptions | None) -> ModelSpec | ErrorRecord:
        try:
            return await self._on_reader(self._repositories.spec, self._snapshot, model, options)
        except MoorageError as error:
            return ErrorRecord.of(error)

    async def _on_reader(self, function: Callable[..., R], *args: object) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._readers, function, *args)
