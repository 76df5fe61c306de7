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
    wiring, options = _imported("moorage._app.wiring"), _imported("moorage._app.options")
    chosen = options.ServerOptions(model_repository=(str(repository),))
    repositories = wiring.repositories(chosen, wiring.load_plugins())
    return lambda: len(repositories.scan().models)


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
