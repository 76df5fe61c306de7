"""The defaults that Triton writes into a configuration before it serves the model."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import TWO_ON_CPU, WITHOUT_NVIDIA, backend_of
from moorage.config.schema import (
    DynamicBatching,
    Ensembling,
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
from moorage.config.validation.instances import placement_faults
from moorage.errors import ConfigError

DEFAULT_SEQUENCE_IDLE_US = 1_000_000
"""After this time without a request a sequence is over, where the configuration does not say."""


def normalise(config: ModelConfig, *, gpus: Sequence[int] = (), source: ParsedConfig | None = None) -> ModelConfig:
    """The configuration with all defaults written out.

    `gpus` are the numbers of the GPUs that instances may use. `source` is where the configuration was read from, to place
    faults. Raises ConfigError when an instance group wants a GPU that is not there.
    """
    filled = evolve(
        config,
        version_policy=_version_policy(config),
        scheduling=_scheduling(config),
        optimization=_optimization(config),
        instance_group=_instance_groups(config, gpus),
    )
    parsed = source.with_config(filled) if source is not None else ParsedConfig(filled)
    faults = placement_faults(parsed, gpus)
    if faults:
        raise ConfigError(faults, config.name)
    return filled


def _version_policy(config: ModelConfig) -> VersionPolicy:
    policy = config.version_policy
    return policy if policy is not None else VersionPolicy(Latest(1))


def _preferred(sizes: tuple[int, ...], max_batch_size: int) -> tuple[int, ...]:
    return sizes or ((max_batch_size,) if max_batch_size > 0 else ())


def _scheduling(config: ModelConfig) -> DynamicBatching | SequenceBatching | Ensembling | None:
    choice = config.scheduling
    if isinstance(choice, DynamicBatching):
        return evolve(choice, preferred_batch_size=_preferred(choice.preferred_batch_size, config.max_batch_size))
    if not isinstance(choice, SequenceBatching):
        return choice
    strategy = choice.strategy
    if isinstance(strategy, StrategyOldest):
        strategy = evolve(strategy, preferred_batch_size=_preferred(strategy.preferred_batch_size, config.max_batch_size))
    idle = choice.max_sequence_idle_microseconds or DEFAULT_SEQUENCE_IDLE_US
    return evolve(choice, strategy=strategy, max_sequence_idle_microseconds=idle)


def _optimization(config: ModelConfig) -> OptimizationPolicy | None:
    given = config.optimization
    if isinstance(config.scheduling, Ensembling):
        return given
    policy = given or OptimizationPolicy()
    pinned = PinnedMemoryBuffer(enable=True)
    return evolve(
        policy,
        input_pinned_memory=policy.input_pinned_memory or pinned,
        output_pinned_memory=policy.output_pinned_memory or pinned,
    )


def _instance_groups(config: ModelConfig, gpus: Sequence[int]) -> tuple[InstanceGroup, ...]:
    if isinstance(config.scheduling, Ensembling):
        return config.instance_group
    groups = config.instance_group or (InstanceGroup(name=config.name),)
    backend = backend_of(config)
    return tuple(
        _instance_group(group, group.name or f"{config.name}_{index}", backend, gpus) for index, group in enumerate(groups)
    )


def _instance_group(group: InstanceGroup, name: str, backend: str, gpus: Sequence[int]) -> InstanceGroup:
    kind = group.kind
    if kind is InstanceKind.KIND_AUTO:
        on_gpu = bool(gpus) and set(group.gpus) <= set(gpus) and backend not in WITHOUT_NVIDIA
        kind = InstanceKind.KIND_GPU if on_gpu else InstanceKind.KIND_CPU
    count = group.count
    if count < 1:
        count = 2 if kind is InstanceKind.KIND_CPU and backend in TWO_ON_CPU else 1
    used = group.gpus or tuple(gpus) if kind is InstanceKind.KIND_GPU else group.gpus
    return evolve(group, name=name, kind=kind, count=count, gpus=used)
