"""Looks for every fault of a repository without serving it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

from attrs import frozen

from moorage._app import wiring
from moorage._app.options import ServerOptions
from moorage._execution import Loader
from moorage._plugins import Registry
from moorage._repository import Repositories, RepositorySnapshot
from moorage._storage import Reporter
from moorage.config.parsed import ParsedConfig
from moorage.control import ModelId
from moorage.errors import ErrorRecord, Fault, MoorageError, NotFound


@frozen
class Finding:
    """A fault of a model (or of a whole repository: `model` empty)."""

    model: str
    version: int | None
    fault: Fault


@frozen
class Report:
    """All faults of some repositories, and how many models were looked at."""

    findings: Sequence[Finding]
    models: int


def check(options: ServerOptions, *, load: bool, tell: Callable[[str], None], reporter: Reporter | None = None) -> Report:
    """Look for the faults of the repositories. `load` has each version loaded, one at a time, and closed again.

    Files of remote repositories are downloaded for that, as `tell` is told, and removed again.
    """
    registry = wiring.load_plugins(options.block_plugin)
    settings = wiring.load_settings(options)
    with ExitStack() as closing:
        copies = wiring.copies(options, registry, reporter)
        closing.callback(copies.close)
        repositories = wiring.repositories(options, registry, copies)
        closing.callback(repositories.close)
        if load and repositories.remote:
            tell(f"Models of {', '.join(repositories.remote)} are downloaded to be loaded; --no-load does without.")
        return _report(repositories, registry, Loader(registry, settings, copies=copies) if load else None)


def _report(repositories: Repositories, registry: Registry, loader: Loader | None) -> Report:
    snapshot = repositories.scan()
    findings = [Finding("", None, Fault(error.message, file=url)) for url, error in snapshot.public().unreadable.items()]
    for model in sorted(snapshot.public().models):
        findings += _of_model(repositories, snapshot, model, registry, loader)
    if loader is not None:
        loader.close()
    return Report(findings, len(snapshot.models))


def _of_model(
    repositories: Repositories, snapshot: RepositorySnapshot, model: ModelId, registry: Registry, loader: Loader | None
) -> Iterator[Finding]:
    try:
        spec = repositories.spec(snapshot, model, None)
    except MoorageError as error:
        yield from _findings(model, None, error)
        return
    if loader is None:
        yield from _of_backend(model, next(iter(spec.versions.values())).parsed, registry)
    for version, version_spec in sorted(spec.versions.items()):
        if loader is None or spec.dependencies:  # an ensemble can be loaded only where its steps serve
            continue
        try:
            loader(version_spec).close()
        except MoorageError as error:
            yield from _findings(model, version, error)


def _of_backend(model: ModelId, parsed: ParsedConfig, registry: Registry) -> Iterator[Finding]:
    """What only a load would find out otherwise: whether there is the backend."""
    try:
        if parsed.config.backend:
            registry.backend(parsed.config.backend)
    except NotFound as error:
        yield Finding(str(model), None, parsed.fault("backend", str(error)))


def _findings(model: ModelId, version: int | None, error: MoorageError) -> Sequence[Finding]:
    record = ErrorRecord.of(error)
    return [Finding(str(model), version, fault) for fault in record.faults or (Fault(record.message),)]
