"""Which file of a version is loaded on which device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from moorage._plugins import Registry
from moorage.backend import Placement, VersionFiles
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault, InvalidArgument

Device = tuple[InstanceKind, int]
Capability = Callable[[int], str]
"""A GPU's number to its compute capability, such as "8.6"; "" if that cannot be told."""


def files_by_device(
    config: ModelConfig,
    files: VersionFiles,
    places: Sequence[Placement],
    *,
    default: str,
    registry: Registry,
    capability: Capability,
) -> Mapping[Device, str]:
    """For each device that instances are placed on: a plugin's choice, else that of `cc_model_filenames`, else `default`.

    Raises ConfigError if plugins disagree, InvalidArgument if a file is not there.
    """
    devices = {(place.kind, place.device_id): place for place in reversed(places)}
    return {
        device: _plugins_choice(config, files, place, registry) or _configured(config, files, place, default, capability)
        for device, place in devices.items()
    }


def _plugins_choice(config: ModelConfig, files: VersionFiles, place: Placement, registry: Registry) -> str:
    chosen = {name: file for name, select in registry.selectors if (file := select(config, files, place))}
    if len(set(chosen.values())) > 1:
        raise ConfigError([Fault(f"plugins disagree on the file to load: {chosen}")], config.name)
    return next(iter(chosen.values()), "")


def _configured(config: ModelConfig, files: VersionFiles, place: Placement, default: str, capability: Capability) -> str:
    field, name = "default_model_filename", default
    if config.cc_model_filenames and place.kind is InstanceKind.KIND_GPU:
        found = capability(place.device_id)
        if found in config.cc_model_filenames:
            field, name = f'cc_model_filenames["{found}"]', config.cc_model_filenames[found]
    if files.path is not None and name and not (files.path / name).exists():
        there = ", ".join(sorted(files.top_level())) or "nothing"
        advice = f"give the model's file this name, or set {field} to its name"
        raise InvalidArgument(f"model '{config.name}': {files.path} has no '{name}' (it holds {there}); {advice}")
    return name
