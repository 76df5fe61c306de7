"""Checks of instance groups: those that the file alone decides, and those that need to know the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import TENSORRT, backend_of
from moorage.config.schema import Ensembling, InstanceGroup, InstanceKind
from moorage.errors import Fault


def placement_faults(parsed: ParsedConfig, gpus: Sequence[int]) -> list[Fault]:
    """What keeps the (normalised) instance groups from being placed on this machine."""
    if isinstance(parsed.config.scheduling, Ensembling):
        return []
    faults: list[Fault] = []
    for index, group in enumerate(parsed.config.instance_group):
        faults.extend(_placement(parsed, f"instance_group[{index}]", group, gpus))
    return faults


def _placement(parsed: ParsedConfig, path: str, group: InstanceGroup, gpus: Sequence[int]) -> Iterator[Fault]:
    owner = f"instance group '{group.name}' of model '{parsed.config.name}'"
    if group.kind is not InstanceKind.KIND_GPU:
        if group.gpus:
            yield parsed.fault(
                f"{path}.gpus", f"{owner} runs as {group.kind.name} but lists GPUs", "remove gpus, or write kind: KIND_GPU"
            )
    elif not gpus:
        yield parsed.fault(f"{path}.kind", f"{owner} wants a GPU but none is available", "write kind: KIND_CPU")
    else:
        missing = [number for number in group.gpus if number not in gpus]
        if missing:
            have = ", ".join(map(str, gpus))
            lost = ", ".join(map(str, missing))
            yield parsed.fault(f"{path}.gpus", f"{owner} wants GPU {lost}, which is not available", f"choose from {have}")


def instance_faults(parsed: ParsedConfig, platforms: Mapping[str, str]) -> Iterator[Fault]:
    """What is wrong with the instance groups on any machine."""
    config = parsed.config
    if isinstance(config.scheduling, Ensembling):
        return
    backend = backend_of(config, platforms)
    for index, group in enumerate(config.instance_group):
        path = f"instance_group[{index}]"
        owner = f"instance group '{group.name or index}' of model '{config.name}'"
        if group.gpus and group.kind in (InstanceKind.KIND_CPU, InstanceKind.KIND_MODEL):
            advice = "remove gpus, or write kind: KIND_GPU"
            yield parsed.fault(f"{path}.gpus", f"{owner} has {group.kind.name} but lists GPUs", advice)
        if group.profile and backend not in ("", TENSORRT):
            yield parsed.fault(f"{path}.profile", f"{owner} has profiles, which only TensorRT models take", "remove profile")
        elif group.profile:
            yield from _profile_faults(parsed, path, owner, group)


def _profile_faults(parsed: ParsedConfig, path: str, owner: str, group: InstanceGroup) -> Iterator[Fault]:
    for number, profile in enumerate(group.profile):
        if not (profile.isascii() and profile.isdigit()):
            yield parsed.fault(
                f"{path}.profile[{number}]", f"{owner} has the profile '{profile}'", 'write a number in quotes, such as "0"'
            )
