"""Schedulers: the dynamic batcher, the sequence batcher, ensembles."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from moorage.config.schema.attributes import mapping, oneof
from moorage.config.schema.enums import ControlKind, TimeoutAction
from moorage.types.datatype import DataType


@frozen
class QueuePolicy:
    timeout_action: TimeoutAction = TimeoutAction.REJECT
    default_timeout_microseconds: int = 0
    allow_timeout_override: bool = False
    max_queue_size: int = 0


@frozen
class DynamicBatching:
    preferred_batch_size: tuple[int, ...] = ()
    max_queue_delay_microseconds: int = 0
    preserve_ordering: bool = False
    priority_levels: int = 0
    default_priority_level: int = 0
    default_queue_policy: QueuePolicy | None = None
    priority_queue_policy: Mapping[int, QueuePolicy] = mapping()


@frozen
class Control:
    kind: ControlKind = ControlKind.CONTROL_SEQUENCE_START
    int32_false_true: tuple[int, ...] = ()
    fp32_false_true: tuple[float, ...] = ()
    bool_false_true: tuple[bool, ...] = ()
    data_type: DataType = DataType.INVALID


@frozen
class ControlInput:
    name: str = ""
    control: tuple[Control, ...] = ()


@frozen
class InitialState:
    data_type: DataType = DataType.INVALID
    dims: tuple[int, ...] = ()
    state_data: bool | str | None = oneof(zero_data=bool, data_file=str)
    name: str = ""


@frozen
class State:
    input_name: str = ""
    output_name: str = ""
    data_type: DataType = DataType.INVALID
    dims: tuple[int, ...] = ()
    initial_state: tuple[InitialState, ...] = ()
    use_same_buffer_for_input_output: bool = False
    use_growable_memory: bool = False


@frozen
class StrategyDirect:
    max_queue_delay_microseconds: int = 0
    minimum_slot_utilization: float = 0.0


@frozen
class StrategyOldest:
    max_candidate_sequences: int = 0
    preferred_batch_size: tuple[int, ...] = ()
    max_queue_delay_microseconds: int = 0
    preserve_ordering: bool = False


@frozen
class SequenceBatching:
    strategy: StrategyDirect | StrategyOldest | None = oneof(direct=StrategyDirect, oldest=StrategyOldest)
    max_sequence_idle_microseconds: int = 0
    control_input: tuple[ControlInput, ...] = ()
    state: tuple[State, ...] = ()
    iterative_sequence: bool = False


@frozen
class EnsembleStep:
    model_name: str = ""
    model_version: int = 0
    input_map: Mapping[str, str] = mapping()
    output_map: Mapping[str, str] = mapping()
    model_namespace: str = ""


@frozen
class Ensembling:
    step: tuple[EnsembleStep, ...] = ()
    max_inflight_requests: int = 0
