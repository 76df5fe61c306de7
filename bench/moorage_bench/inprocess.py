"""The seam to moorage within this process: the one place of the benchmarks that imports it.

moorage is imported here when it is asked for, so that the sets that only start servers run without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from moorage_bench.install import MissingPeerError
from moorage_bench.load import LoadError

Infer = Callable[[Mapping[str, np.ndarray]], Any]
"""Runs one request from arrays to arrays."""


Ask = Callable[[str, Mapping[str, np.ndarray]], object]
"""Runs one request of a model, named first."""


@contextmanager
def serving_in_process(repository: Path, model: str) -> Iterator[Infer]:
    """One model of a repository, without any protocol. Raises MissingPeerError if moorage cannot be had."""
    with serving_models(repository) as ask:
        yield partial(ask, model)


@contextmanager
def serving_models(repository: Path) -> Iterator[Ask]:
    """moorage without any protocol, with all models of a repository loaded. Raises MissingPeerError if it cannot be had."""
    moorage, errors = _imported("moorage"), _imported("moorage.errors")
    try:
        server = moorage.Server(model_repository=repository).start()
    except (ImportError, errors.MoorageError) as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
    try:
        yield server.infer
    finally:
        server.close()


@contextmanager
def bare_instance(repository: Path, model: str, filename: str) -> Iterator[Infer]:
    """One instance of a backend, called without the server around it. Raises MissingPeerError if the plugin is missing."""
    backends, schema, errors = (_imported(f"moorage.{name}") for name in ("backend", "config.schema", "errors"))
    folder = repository / model
    config = _imported("moorage.config").parse_text((folder / "config.pbtxt").read_text()).config
    place = backends.Placement(f"{model}_0_0", schema.InstanceKind.KIND_CPU)
    context = backends.LoadContext(model, 1, config, folder / "1", folder, filename, (place,))
    try:
        backend = _imported("moorage._app.wiring").load_plugins().backend(config.backend)()
        loaded = backend.load(context)
    except errors.MoorageError as error:
        raise MissingPeerError(str(error)) from error
    instance, outputs = loaded.instance(place), [output.name for output in config.output]
    try:
        yield lambda inputs: instance.run(inputs, outputs)
    finally:
        instance.close()
        loaded.close()
        backend.close()


def starts(repository: str, cache: Path) -> Callable[[], int]:
    """A function that starts and ends a server of a repository with a cache; the number of models that were ready."""
    server = _imported("moorage").Server

    def start() -> int:
        with server(model_repository=repository, model_cache_dir=str(cache)) as made:
            return sum(entry.state == "READY" for entry in made.index())

    return start


def scanner(repository: Path) -> Callable[[], int]:
    """A function that scans the repository once and returns the number of models it found."""
    repositories = _repositories(repository)
    return lambda: len(repositories.scan().models)


def poller(repository: Path | str) -> Callable[[], int]:
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


def _repositories(folder: Path | str) -> Any:
    wiring, options = _imported("moorage._app.wiring"), _imported("moorage._app.options")
    return wiring.repositories(options.ServerOptions(model_repository=(str(folder),)), wiring.load_plugins())


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPeerError(f"moorage in process: {error}") from error
