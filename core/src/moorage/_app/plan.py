"""What a start, or the next poll of a running server, would do, without doing it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from moorage._app import wiring
from moorage._app.difference import differences
from moorage._app.options import ServerOptions
from moorage._control.forecast import INSTANCES, Held, Step, of_absent, of_model
from moorage._repository import ModelSpec, Repositories, RepositorySnapshot, VersionSpec
from moorage.config.schema import ModelConfig
from moorage.control import ModelId
from moorage.errors import ErrorRecord, MoorageError

Served = Mapping[str, Mapping[int, ModelConfig]]
"""What a server serves: model, version, configuration."""


def plan(options: ServerOptions, served: Served) -> list[Step]:
    """The steps from what is served to what the repositories hold, by model and version. Raises a MoorageError."""
    repositories = wiring.repositories(options, wiring.load_plugins(options.block_plugin))
    snapshot = repositories.scan()
    steps = [Step("", None, "refuse", error.message) for error in snapshot.public().unreadable.values()]
    for model in sorted(snapshot.models):
        name = str(model) if options.model_namespacing else model.name
        steps += _of_model(name, _wanted(repositories, snapshot, model), served.get(name, {}))
    there = {str(model) if options.model_namespacing else model.name for model in snapshot.models}
    for name in sorted(served.keys() - there):
        steps += of_absent(name, served[name], unreadable=bool(snapshot.unreadable))
    return steps


def _wanted(repositories: Repositories, snapshot: RepositorySnapshot, model: ModelId) -> ModelSpec | ErrorRecord:
    try:
        return repositories.spec(snapshot, model)
    except MoorageError as error:
        return ErrorRecord.of(error)


def _of_model(name: str, wanted: ModelSpec | ErrorRecord, served: Mapping[int, ModelConfig]) -> list[Step]:
    """The steps of one model of a server of which the configurations are known."""
    specs = wanted.versions if isinstance(wanted, ModelSpec) else {}
    changes = {number: differences(spec.parsed, served[number]) for number, spec in specs.items() if number in served}
    return of_model(
        name,
        wanted,
        served.keys(),
        _held(specs, changes),
        lambda spec: f"the configuration differs: {', '.join(changes[spec.version])}",
    )


def _held(wanted: Mapping[int, VersionSpec], changes: Mapping[int, list[str]]) -> Iterator[Held]:
    """What is served, with the fingerprints of what is wanted as far as the configuration is the same."""
    for version, fields in changes.items():
        spec = wanted[version]
        like = not set(fields) - {INSTANCES}
        yield Held(version, version, "" if fields else spec.fingerprint, spec.identity if like else "")
