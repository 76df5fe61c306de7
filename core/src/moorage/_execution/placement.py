"""Instance groups to places: how many instances run where."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from attrs import evolve

from moorage.backend import Placement
from moorage.config.schema import InstanceGroup, InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault

_MOST = 1024


class Post(NamedTuple):
    """A place for an instance and, but for its count, the group that asks for it."""

    place: Placement
    group: InstanceGroup


def posts(config: ModelConfig) -> tuple[Post, ...]:
    """The places of all instances of a normalised configuration, each with its group. Raises ConfigError as `placements`."""
    placements(config)
    groups = (group for group in config.instance_group if not group.passive)
    return tuple(Post(place, evolve(group, count=1)) for group in groups for place in _of_group(group))


def placements(config: ModelConfig) -> tuple[Placement, ...]:
    """The places of all instances of a normalised configuration, `count` for each group (for each GPU of a GPU group).

    Passive groups have no instances. Names are `<group>_<i>`, with the GPU's number in GPU groups: `<group>_<i>_gpu<n>`.
    Raises ConfigError for more than a process can have, and if all groups are passive: requests would wait for ever.
    """
    places = tuple(islice((p for group in config.instance_group if not group.passive for p in _of_group(group)), _MOST + 1))
    if len(places) > _MOST:
        fault = Fault(f"a version can have {_MOST} instances, each has a thread of its own", field="instance_group")
        raise ConfigError([fault], config.name)
    if config.instance_group and not places:
        advice = "remove passive from one of them, or add a group without it"
        fault = Fault("all groups are passive, so that no instance takes requests", field="instance_group", advice=advice)
        raise ConfigError([fault], config.name)
    return places


def _of_group(group: InstanceGroup) -> Iterator[Placement]:
    secondary = tuple((device.kind.name, device.device_id) for device in group.secondary_devices)
    devices = group.gpus if group.kind is InstanceKind.KIND_GPU else (0,)
    for device in devices:
        for index in range(group.count):
            suffix = f"_gpu{device}" if group.kind is InstanceKind.KIND_GPU else ""
            yield Placement(f"{group.name}_{index}{suffix}", group.kind, device, group.host_policy, secondary, group.profile)
