"""The seam to moorage within this process: the one place of the benchmarks that imports it.

moorage is imported here when it is asked for, so that the sets that only start servers run without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from moorage_bench.install import MissingPeerError
from moorage_bench.load import LoadError

Infer = Callable[[Mapping[str, np.ndarray]], object]
"""Runs one request from arrays to arrays."""


@contextmanager
def serving_in_process(repository: Path, model: str) -> Iterator[Infer]:
    """moorage without any protocol, with all models of a repository loaded. Raises MissingPeerError if it cannot be had."""
    moorage, errors = _imported("moorage"), _imported("moorage.errors")
    try:
        server = moorage.Server(model_repository=repository).start()
    except (ImportError, errors.MoorageError) as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
    try:
        yield lambda inputs: server.infer(model, inputs)
    finally:
        server.close()


def scanner(repository: Path) -> Callable[[], int]:
    """A function that scans the repository once and returns the number of models it found."""
    repositories = _repositories(repository)
    return lambda: len(repositories.scan().models)


def poller(repository: Path) -> Callable[[], int]:
    """A function that does what mode poll does at each poll, all models being known; returns how many there are.

    Raises LoadError if a model would be loaded, which none has reason to be.
    """
    repositories, watch = _repositories(repository), _imported("moorage._control.watch")

    def decide(memory: Any) -> tuple[Any, int]:
        look = watch.Look(repositories.scan().public(), 0.0, 0.0)
        return watch.decide(memory, look, 0.0, {}), len(look.snapshot.models)

    memory = decide(watch.Memory())[0].memory

    def poll() -> int:
        decision, count = decide(memory)
        if decision.wanted or decision.gone:
            raise LoadError("models were taken for changed")
        return count

    return poll


def _repositories(folder: Path) -> Any:
    wiring, options = _imported("moorage._app.wiring"), _imported("moorage._app.options")
    return wiring.repositories(options.ServerOptions(model_repository=(str(folder),)), wiring.load_plugins())


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
