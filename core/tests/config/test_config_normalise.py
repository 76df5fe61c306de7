"""The defaults that are written into a configuration before it is served."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.config import normalise, parse_text, to_json
from moorage.config.schema import (
    All,
    DynamicBatching,
    InstanceGroup,
    InstanceKind,
    Latest,
    ModelConfig,
    OptimizationPolicy,
    PinnedMemoryBuffer,
    SequenceBatching,
    StrategyOldest,
    VersionPolicy,
)
from moorage.errors import ConfigError

CPU, GPU, AUTO = InstanceKind.KIND_CPU, InstanceKind.KIND_GPU, InstanceKind.KIND_AUTO
ON = PinnedMemoryBuffer(enable=True)


def groups(*given: InstanceGroup, backend: str = "python", gpus: tuple[int, ...] = ()) -> tuple[InstanceGroup, ...]:
    return normalise(ModelConfig(name="m", backend=backend, instance_group=given), gpus=gpus).instance_group


def test_the_default_group_is_named_after_the_model() -> None:
    assert groups() == (InstanceGroup("m", CPU, 1),)
    assert groups(gpus=(0, 1)) == (InstanceGroup("m", GPU, 1, gpus=(0, 1)),)


def test_groups_without_a_name_are_numbered_by_place() -> None:
    given = (InstanceGroup(name="a", kind=CPU, count=2), InstanceGroup(kind=CPU), InstanceGroup(kind=CPU))
    assert [(group.name, group.count) for group in groups(*given)] == [("a", 2), ("m_1", 1), ("m_2", 1)]


@pytest.mark.parametrize(
    "backend, count", [("onnxruntime", 2), ("tensorflow", 2), ("pytorch", 1), ("openvino", 1), ("python", 1)]
)
def test_two_instances_on_the_cpu_for_some_backends(backend: str, count: int) -> None:
    assert [group.count for group in groups(backend=backend)] == [count]
    assert [group.count for group in groups(InstanceGroup(kind=CPU, count=3), backend=backend)] == [3]
    assert [group.count for group in groups(backend=backend, gpus=(0,))] == [1]


def test_the_backend_may_be_known_by_its_platform_only() -> None:
    (group,) = normalise(ModelConfig(name="m", platform="onnxruntime_onnx")).instance_group
    assert group.count == 2


def test_auto_means_gpu_where_the_listed_gpus_are_there() -> None:
    assert groups(InstanceGroup(kind=AUTO, gpus=(1,)), gpus=(0, 1)) == (InstanceGroup("m_0", GPU, 1, gpus=(1,)),)
    assert groups(InstanceGroup(kind=AUTO)) == (InstanceGroup("m_0", CPU, 1),)


def test_auto_never_means_a_gpu_for_a_backend_that_cannot_use_it() -> None:
    assert groups(backend="openvino", gpus=(0,)) == (InstanceGroup("m", CPU, 1),)


@pytest.mark.parametrize(
    "text, gpus, path, advice",
    [
        ("instance_group [ { kind: KIND_GPU } ]", (), "instance_group[0].kind", "write kind: KIND_CPU"),
        ("instance_group [ { kind: KIND_GPU gpus: [ 0, 3 ] } ]", (0, 1), "instance_group[0].gpus", "choose from 0, 1"),
        ("instance_group [ { kind: KIND_AUTO gpus: [ 7 ] } ]", (0,), "instance_group[0].gpus", "remove gpus"),
    ],
)
def test_gpus_that_are_not_there(text: str, gpus: tuple[int, ...], path: str, advice: str) -> None:
    parsed = parse_text(f'name: "m"\n{text}', file="m/config.pbtxt")
    with pytest.raises(ConfigError, match="model 'm'") as caught:
        normalise(parsed.config, gpus=gpus, source=parsed)
    (fault,) = caught.value.faults
    assert (fault.file, fault.line, fault.field) == ("m/config.pbtxt", 2, path)
    assert advice in fault.advice
    with pytest.raises(ConfigError):
        normalise(parsed.config, gpus=gpus)


def test_the_latest_version_is_served_unless_told_otherwise() -> None:
    assert normalise(ModelConfig(name="m")).version_policy == VersionPolicy(Latest(1))
    assert normalise(ModelConfig(name="m", version_policy=VersionPolicy(All()))).version_policy == VersionPolicy(All())
    assert normalise(ModelConfig(name="m", version_policy=VersionPolicy())).version_policy == VersionPolicy()


def test_pinned_memory_is_on_unless_switched_off() -> None:
    assert normalise(ModelConfig(name="m")).optimization == OptimizationPolicy(input_pinned_memory=ON, output_pinned_memory=ON)
    off = OptimizationPolicy(input_pinned_memory=PinnedMemoryBuffer())
    expected = OptimizationPolicy(input_pinned_memory=PinnedMemoryBuffer(), output_pinned_memory=ON)
    assert normalise(ModelConfig(name="m", optimization=off)).optimization == expected


@pytest.mark.parametrize("limit, given, expected", [(6, (), (6,)), (0, (), ()), (6, (2, 4), (2, 4))])
def test_the_preferred_batch_is_the_largest(limit: int, given: tuple[int, ...], expected: tuple[int, ...]) -> None:
    dynamic = normalise(ModelConfig(name="m", max_batch_size=limit, scheduling=DynamicBatching(given)))
    assert dynamic.scheduling == DynamicBatching(expected)
    oldest = SequenceBatching(StrategyOldest(preferred_batch_size=given))
    sequence = normalise(ModelConfig(name="m", max_batch_size=limit, scheduling=oldest)).scheduling
    assert isinstance(sequence, SequenceBatching)
    assert sequence.strategy == StrategyOldest(preferred_batch_size=expected)


def test_sequences_end_after_a_second_unless_told_otherwise() -> None:
    for idle, expected in ((0, 1_000_000), (5, 5)):
        config = ModelConfig(name="m", scheduling=SequenceBatching(max_sequence_idle_microseconds=idle))
        scheduling = normalise(config).scheduling
        assert isinstance(scheduling, SequenceBatching)
        assert scheduling.max_sequence_idle_microseconds == expected


def test_an_ensemble_gets_a_version_policy_only() -> None:
    config = parse_text('name: "m" platform: "ensemble" ensemble_scheduling { step { model_name: "a" } }').config
    assert normalise(config, gpus=(0,)) == evolve(config, version_policy=VersionPolicy(Latest(1)))


def test_a_plain_model_as_triton_shows_it() -> None:
    shown = to_json(normalise(parse_text('name: "m" backend: "python" max_batch_size: 4').config))
    assert shown["version_policy"] == {"latest": {"num_versions": 1}}
    assert shown["optimization"] == {
        "priority": "PRIORITY_DEFAULT",
        "input_pinned_memory": {"enable": True},
        "output_pinned_memory": {"enable": True},
        "gather_kernel_buffer_threshold": 0,
        "eager_batching": False,
    }
    assert shown["instance_group"] == [
        {"name": "m", "kind": "KIND_CPU", "count": 1, "gpus": [],
         "secondary_devices": [], "profile": [], "passive": False, "host_policy": ""}
    ]  # fmt: skip
    assert "dynamic_batching" not in shown


@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_normalising_twice_changes_nothing(configs: st.SearchStrategy[ModelConfig], data: st.DataObject) -> None:
    config = evolve(data.draw(configs), name="m")
    gpus = data.draw(st.sampled_from([(), (0, 1)]))
    try:
        once = normalise(config, gpus=gpus)
    except ConfigError:
        return
    assert normalise(once, gpus=gpus) == once
