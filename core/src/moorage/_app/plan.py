"""What a start, or the next poll of a running server, would do, without doing it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from moorage._app import wiring
from moorage._app.difference import INSTANCES, differences
from moorage._app.options import ServerOptions
from moorage._lifecycle.plan import decide
from moorage._lifecycle.transitions import State
from moorage._repository import ModelSpec, Repositories, RepositorySnapshot, VersionSpec
from moorage.config.schema import ModelConfig
from moorage.control import ModelId
from moorage.errors import ErrorRecord, MoorageError

Served = Mapping[str, Mapping[int, ModelConfig]]
"""What a server serves: model, version, configuration."""


@frozen
class Step:
    """What happens to a version, or to a model as a whole (`version` None).

    `action` is load, replace, update (instances are added or removed), unload, keep, or refuse.
    """

    model: str
    version: int | None
    action: str
    reason: str = ""


@frozen
class _Unit:
    """A version that a server serves, as the lifecycle would hold it."""

    serial: int
    version: int
    fingerprint: str
    identity: str
    state: State = State.READY
    claimed: bool = True


def plan(options: ServerOptions, served: Served) -> list[Step]:
    """The steps from what is served to what the repositories hold, by model and version. Raises a MoorageError."""
    repositories = wiring.repositories(options, wiring.load_plugins(options.block_plugin))
    snapshot = repositories.scan()
    steps = [Step("", None, "refuse", error.message) for error in snapshot.public().unreadable.values()]
    for model in sorted(snapshot.models):
        steps += of_model(model.name, _wanted(repositories, snapshot, model), served.get(model.name, {}))
    gone = sorted(served.keys() - {model.name for model in snapshot.models})
    action, reason = ("keep", "a repository cannot be read") if snapshot.unreadable else ("unload", "it is in no repository")
    return steps + [Step(name, version, action, reason) for name in gone for version in sorted(served[name])]


def _wanted(repositories: Repositories, snapshot: RepositorySnapshot, model: ModelId) -> ModelSpec | ErrorRecord:
    try:
        return repositories.spec(snapshot, model)
    except MoorageError as error:
        return ErrorRecord.of(error)


def of_model(name: str, wanted: ModelSpec | ErrorRecord, served: Mapping[int, ModelConfig]) -> list[Step]:
    """The steps of one model."""
    if isinstance(wanted, ErrorRecord):
        kept = [Step(name, version, "keep", "what is in the repository cannot be loaded") for version in sorted(served)]
        return [Step(name, None, "refuse", wanted.message), *kept]
    changes = {number: differences(spec.parsed, served[number]) for number, spec in wanted.versions.items() if number in served}
    made = decide(_units(wanted.versions, changes), wanted, renew=True)
    steps = [*(Step(name, unit.version, "keep") for unit in made.carried), *_loads(name, made.loads, changes)]
    steps += [Step(name, renewal.spec.version, "update", f"only {INSTANCES} differs") for renewal in made.renewals]
    gone = served.keys() - wanted.versions.keys()
    steps += [Step(name, version, "unload", "it is not there, or the version policy does not pick it") for version in gone]
    return sorted(steps, key=lambda step: step.version or 0)


def _units(wanted: Mapping[int, VersionSpec], changes: Mapping[int, list[str]]) -> Iterator[_Unit]:
    """What is served, with the fingerprints of what is wanted as far as the configuration is the same."""
    for version, fields in changes.items():
        spec = wanted[version]
        like = not set(fields) - {INSTANCES}
        yield _Unit(version, version, "" if fields else spec.fingerprint, spec.identity if like else "")


def _loads(name: str, loads: Iterable[VersionSpec], changes: Mapping[int, list[str]]) -> Iterator[Step]:
    for spec in loads:
        if spec.version in changes:
            yield Step(name, spec.version, "replace", f"the configuration differs: {', '.join(changes[spec.version])}")
        else:
            yield Step(name, spec.version, "load")
