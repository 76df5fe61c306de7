"""From a model's folder and its configuration to what is to be loaded."""

from __future__ import annotations

from collections.abc import Mapping

from moorage import config as configs
from moorage._plugins import Registry
from moorage._repository.config_file import ConfigSource, parse
from moorage._repository.discover import discover
from moorage._repository.fingerprint import of_version
from moorage._repository.layout import hidden_path
from moorage._repository.scan import ModelFolder
from moorage._repository.spec import ModelSpec, VersionSpec
from moorage._repository.version_policy import missing, select
from moorage.backend import VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import ENSEMBLE, KNOWN
from moorage.config.schema import Ensembling, ModelConfig
from moorage.errors import ConfigError, Fault
from moorage.storage import InPlaceStorage


def build(
    model: ModelFolder,
    source: ConfigSource | None,
    registry: Registry,
    *,
    auto_complete: bool,
    variables: Mapping[str, str] | None = None,
) -> ModelSpec:
    """The spec of a model. `source` None stands for a model without a configuration of its own.

    Raises ConfigError. With `auto_complete`, what the model's own file can still heal is no fault yet; faults of tensors
    alone are left to the load of each version, so that the index shows the versions that failed.
    """
    if source is None and not auto_complete:
        raise ConfigError([_no_file(model)], model.id.name)
    parsed = parse(source or ConfigSource(), model.id.name, variables)
    versions = select(parsed.config.version_policy, model.folder.versions)
    if not versions:
        raise ConfigError([_no_version(model, parsed)], model.id.name)
    parsed = discover(parsed, version_files(model, versions[-1]), registry)
    final = not auto_complete or parsed.config.platform == ENSEMBLE
    faults = configs.validate(parsed, {**KNOWN, **registry.platforms}, complete=final)
    if any(not _is_of_versions(fault) for fault in faults):
        raise ConfigError(faults, model.id.name)
    content = source.content if source is not None else b""
    specs = {version: _version(model, version, parsed, content) for version in versions}
    return ModelSpec(model.id, specs, _dependencies(parsed.config))


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
    )


def _dependencies(config: ModelConfig) -> frozenset[str]:
    steps = config.scheduling.step if isinstance(config.scheduling, Ensembling) else ()
    return frozenset(step.model_name for step in steps)


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
