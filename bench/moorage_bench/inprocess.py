"""The seam to moorage within this process: the one place of the benchmarks that knows its insides.

moorage is imported here when it is asked for, so that the sets that only start servers run without it.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from moorage_bench.install import MissingPeerError

Infer = Callable[[Mapping[str, np.ndarray]], Awaitable[None]]
"""Runs one request from request object to response object and drops the result."""


_PIECES = {
    "ServerOptions": "moorage._app.options",
    "ModelControl": "moorage._control",
    "Loader": "moorage._execution",
    "InferenceService": "moorage._inference",
    "Manager": "moorage._lifecycle.manager",
    "ServingMap": "moorage._lifecycle.serving",
    "DataType": "moorage.types",
    "InferRequest": "moorage.types",
    "Tensor": "moorage.types",
}


@asynccontextmanager
async def serving_in_process(repository: Path, model: str) -> AsyncIterator[Infer]:
    """moorage without any protocol, with all models of a repository loaded. Raises MissingPeerError if it cannot be built."""
    rooms = _rooms()
    options = rooms.ServerOptions(model_repository=(str(repository),))
    registry = rooms.wiring.load_plugins()
    serving = rooms.ServingMap()
    loader = rooms.Loader(registry, rooms.wiring.load_settings(options))
    manager = rooms.Manager(loader, serving=serving, load_threads=1, retries=0, on_change=lambda _change: None)
    control = rooms.ModelControl(rooms.wiring.repositories(options, registry), manager, rooms.wiring.control_settings(options))
    try:
        failed = [outcome for outcome in await registry.control_mode("none")(control).start() if outcome.error]
        if failed:
            raise MissingPeerError(f"moorage in process: {failed[0].error}")
        yield _infer(rooms, rooms.InferenceService(serving, asyncio.get_running_loop()), model)
    finally:
        await manager.close(1.0)
        control.close()
        await asyncio.to_thread(loader.close)


def scanner(repository: Path) -> Callable[[], int]:
    """A function that scans the repository once and returns the number of models it found."""
    rooms = _rooms()
    options = rooms.ServerOptions(model_repository=(str(repository),))
    repositories = rooms.wiring.repositories(options, rooms.wiring.load_plugins())
    return lambda: len(repositories.scan().models)


def _infer(rooms: Any, service: Any, model: str) -> Infer:
    async def infer(inputs: Mapping[str, np.ndarray]) -> None:
        tensors = {name: rooms.Tensor(name, rooms.DataType.INT32, array) for name, array in inputs.items()}
        response = await service.infer(rooms.InferRequest(model, tensors))
        if response.error is not None:
            raise response.error

    return infer


def _rooms() -> Any:
    """What is needed of moorage, imported now."""
    try:
        found = {name: getattr(importlib.import_module(module), name) for name, module in _PIECES.items()}
        return SimpleNamespace(wiring=importlib.import_module("moorage._app.wiring"), **found)
    except (ImportError, AttributeError) as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
