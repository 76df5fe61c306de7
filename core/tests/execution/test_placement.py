"""Instance groups to places."""

from __future__ import annotations

import pytest

from moorage._execution.placement import placements
from moorage.config.schema import InstanceGroup, InstanceKind, ModelConfig
from moorage.errors import ConfigError


def test_groups_become_places_in_order() -> None:
    config = ModelConfig(
        name="m",
        instance_group=(
            InstanceGroup(name="cpus", kind=InstanceKind.KIND_CPU, count=2, host_policy="near"),
            InstanceGroup(name="gpus", kind=InstanceKind.KIND_GPU, count=2, gpus=(0, 3), profile=("1", "4")),
            InstanceGroup(name="idle", kind=InstanceKind.KIND_CPU, count=1, passive=True),
        ),
    )
    found = [(place.name, place.kind.name, place.device_id) for place in placements(config)]
    assert found == [
        ("cpus_0", "KIND_CPU", 0),
        ("cpus_1", "KIND_CPU", 0),
        ("gpus_0_gpu0", "KIND_GPU", 0),
        ("gpus_1_gpu0", "KIND_GPU", 0),
        ("gpus_0_gpu3", "KIND_GPU", 3),
        ("gpus_1_gpu3", "KIND_GPU", 3),
    ]
    assert placements(config)[0].host_policy == "near"
    assert [place.profiles for place in placements(config)[1:3]] == [(), ("1", "4")]


def test_a_count_that_no_process_can_have_is_refused() -> None:
    def of(count: int) -> ModelConfig:
        return ModelConfig(name="m", instance_group=(InstanceGroup(name="g", kind=InstanceKind.KIND_CPU, count=count),))

    assert len(placements(of(1024))) == 1024
    with pytest.raises(ConfigError, match="model 'm': instance_group: a version can have 1024 instances"):
        placements(of(2**31 - 1))


def test_groups_that_are_all_passive_are_refused() -> None:
    passive = InstanceGroup(name="g", kind=InstanceKind.KIND_CPU, count=1, passive=True)
    with pytest.raises(ConfigError, match="model 'm': instance_group: all groups are passive"):
        placements(ModelConfig(name="m", instance_group=(passive,)))
