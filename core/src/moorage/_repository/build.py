"""From a model's folder and its configuration to what is to be loaded."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from moorage import config as configs
from moorage._plugins import Registry
from moorage._repository.config_file import ConfigSource, parse
from moorage._repository.discover import discover
from moorage._repository.fingerprint import of_identity, of_version
from moorage._repository.layout import hidden_path
from moorage._repository.scan import ModelFolder
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage._repository.version_policy import missing, select
from moorage.backend import VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import ENSEMBLE, KNOWN
from moorage.config.schema import Ensembling, ModelConfig, SequenceBatching
from moorage.errors import ConfigError, Fault, NotFound
from moorage.storage import Entry, InPlaceStorage

logger = logging.getLogger(__name__)


def build(
    model: ModelFolder,
    source: ConfigSource | None,
    registry: Registry,
    *,
    auto_complete: bool,
    variables: Mapping[str, str] | None = None,
    chosen: frozenset[int] = frozenset(),
) -> ModelSpec:
    """The spec of a model. `source` None stands for a model without a configuration of its own.

    `chosen` are the versions to load, whatever the version policy says; without any, the policy picks. Raises NotFound for one
    that is not there.
    Raises ConfigError. With `auto_complete`, what the model's own file can still heal is no fault yet; faults of tensors
    alone are left to the load of each version, so that the index shows the versions that failed.
    """
    if source is None and not auto_complete:
        raise ConfigError([_no_file(model)], model.id.name)
    parsed = parse(source or ConfigSource(), model.id.name, variables)
    there = _versions(model, parsed.config)
    versions = _chosen(model, there, chosen) if chosen else select(parsed.config.version_policy, there)
    if not versions:
        raise ConfigError([_no_version(model, parsed)], model.id.name)
    for name, why in sorted(model.folder.skipped.items()):
        logger.warning("model '%s': the folder '%s' was skipped as a version, %s", model.id, name, why)
    parsed = discover(parsed, version_files(model, versions[-1]), registry)
    final = not auto_complete or parsed.config.platform == ENSEMBLE
    faults = configs.validate(parsed, {**KNOWN, **registry.platforms}, complete=final)
    if any(not _is_of_versions(fault) for fault in faults):
        raise ConfigError(faults, model.id.name)
    content = source.content if source is not None else b""
    specs = {version: _version(model, version, parsed, content) for version in versions}
    return ModelSpec(model.id, specs, _dependencies(parsed.config))


def _versions(model: ModelFolder, config: ModelConfig) -> tuple[int, ...]:
    """The versions in the folder. An ensemble has no files, and git and object stores keep no empty folder: it is version 1."""
    return model.folder.versions or ((1,) if isinstance(config.scheduling, Ensembling) else ())


def _chosen(model: ModelFolder, there: tuple[int, ...], versions: frozenset[int]) -> tuple[int, ...]:
    absent = sorted(versions - set(there))
    if absent:
        listed = ", ".join(map(str, there)) or "none"
        raise NotFound(
            f"model '{model.id}' has no version {', '.join(map(str, absent))} in {model.repository.url} (there: {listed})"
        )
    return tuple(sorted(versions))


def _is_of_versions(fault: Fault) -> bool:
    return fault.field.startswith(("input", "output", "batch_input", "batch_output"))


def version_files(model: ModelFolder, version: int) -> VersionFiles:
    """What discovery and completion see of one version."""
    prefix = f"{version}/"
    paths = (e.path[len(prefix) :] for e in model.folder.entries if e.path.startswith(prefix) and not e.is_dir)
    storage, place = model.repository.storage, model.repository.url
    folder = storage.local_path(place) / model.folder.name if isinstance(storage, InPlaceStorage) else None
    return VersionFiles(
        model_name=model.id.name,
        names=frozenset(path for path in paths if not hidden_path(path)),
        path=None if folder is None else folder / str(version),
        model_path=folder,
        version=version,
    )


def _version(model: ModelFolder, version: int, parsed: ParsedConfig, content: bytes) -> VersionSpec:
    return VersionSpec(
        id=model.id,
        version=version,
        parsed=parsed,
        files=version_files(model, version),
        fingerprint=of_version(model.folder, version, content),
        storage=model.repository.storage,
        repository=model.repository.url,
        folder=model.folder.name,
        identity=of_identity(model.folder, version, parsed) if _has_plain_instances(parsed.config) else "",
        entries=_entries(model, version),
    )


def _entries(model: ModelFolder, version: int) -> tuple[Entry, ...]:
    others = {str(other) for other in model.folder.versions if other != version}
    return tuple(e for e in model.folder.entries if not e.is_dir and e.path.partition("/")[0] not in others)


def _has_plain_instances(config: ModelConfig) -> bool:
    """Whether instances can come and go: ensembles have none, and sequences are bound to theirs."""
    return not isinstance(config.scheduling, Ensembling | SequenceBatching)


def _dependencies(config: ModelConfig) -> frozenset[str]:
    steps = config.scheduling.step if isinstance(config.scheduling, Ensembling) else ()
    return frozenset(f"{step.model_namespace}::{step.model_name}".removeprefix("::") for step in steps)


def _no_file(model: ModelFolder) -> Fault:
    place = f"{model.repository.url}/{model.folder.name}"
    return Fault("there is no configuration", place, advice="add config.pbtxt, or start without --disable-auto-complete-config")


def _no_version(model: ModelFolder, parsed: ParsedConfig) -> Fault:
    place = f"{model.repository.url}/{model.folder.name}"
    found = ", ".join(map(str, model.folder.versions))
    if found:
        absent = ", ".join(map(str, missing(parsed.config.version_policy, model.folder.versions)))
        wanted = f"; it names {absent}" if absent else ""
        return parsed.fault("version_policy", f"it picks none of the versions in {place} ({found}){wanted}")
    skipped = "".join(f"; '{name}' was skipped, {why}" for name, why in sorted(model.folder.skipped.items()))
    advice = f"put the model's files into {place}/1"
    return Fault(f"there is no version folder in it{skipped}", place, advice=advice)
