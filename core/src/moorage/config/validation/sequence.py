"""Checks of the sequence batcher: control tensors, states, strategy."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.config.parsed import ParsedConfig
from moorage.config.schema import (
    Control,
    ControlKind,
    InitialState,
    SequenceBatching,
    State,
    StrategyDirect,
    StrategyOldest,
)
from moorage.config.validation.batching import preferred_size_faults
from moorage.errors import Fault
from moorage.types.datatype import DataType

_PAIRS = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION_TYPES = (DataType.UINT64, DataType.INT64, DataType.UINT32, DataType.INT32, DataType.BYTES)


def sequence_faults(parsed: ParsedConfig, *, complete: bool) -> Iterator[Fault]:
    """Faults of `sequence_batching`."""
    batching = parsed.config.scheduling
    if not isinstance(batching, SequenceBatching):
        return
    path = "sequence_batching"
    yield from _control_input_faults(parsed, path, batching)
    yield from _state_faults(parsed, path, batching)
    strategy = batching.strategy
    if isinstance(strategy, StrategyOldest):
        sizes = strategy.preferred_batch_size
        yield from preferred_size_faults(parsed, f"{path}.oldest.preferred_batch_size", sizes, complete=complete)
    elif isinstance(strategy, StrategyDirect) and not 0.0 <= strategy.minimum_slot_utilization <= 1.0:
        where = f"{path}.direct.minimum_slot_utilization"
        message = f"minimum_slot_utilization of model '{parsed.config.name}' is {strategy.minimum_slot_utilization}"
        yield parsed.fault(where, message, "write a number from 0.0 to 1.0")


def _control_input_faults(parsed: ParsedConfig, path: str, batching: SequenceBatching) -> Iterator[Fault]:
    model = parsed.config.name
    names: set[str] = set()
    kinds: set[ControlKind] = set()
    for index, tensor in enumerate(batching.control_input):
        where = f"{path}.control_input[{index}]"
        if not tensor.name:
            yield parsed.fault(f"{where}.name", f"a control input of model '{model}' has no name", 'write name: "..."')
        elif tensor.name in names:
            message = f"the control input '{tensor.name}' of model '{model}' is given twice"
            yield parsed.fault(f"{where}.name", message, "write the name of another tensor")
        names.add(tensor.name)
        for number, control in enumerate(tensor.control):
            place = f"{where}.control[{number}]"
            if control.kind in kinds:
                message = f"model '{model}' has two tensors for {control.kind.name}"
                yield parsed.fault(f"{place}.kind", message, "keep one of them")
            kinds.add(control.kind)
            yield from _control_faults(parsed, place, control)


def _control_faults(parsed: ParsedConfig, path: str, control: Control) -> Iterator[Fault]:
    owner = f"{control.kind.name} of model '{parsed.config.name}'"
    given = [pair for pair in _PAIRS if getattr(control, pair)]
    if control.kind is ControlKind.CONTROL_SEQUENCE_CORRID:
        for pair in given:
            yield parsed.fault(f"{path}.{pair}", f"{owner} carries the sequence's id but has {pair}", f"remove {pair}")
        if control.data_type not in _CORRELATION_TYPES:
            choices = ", ".join(one.config for one in _CORRELATION_TYPES)
            message = f"{owner} has the data type {control.data_type.config}"
            yield parsed.fault(f"{path}.data_type", message, f"write one of {choices}")
        return
    if not given:
        yield parsed.fault(path, f"{owner} has no values", "write int32_false_true: [0, 1], or fp32_ or bool_false_true")
    for pair in given[1:]:
        yield parsed.fault(f"{path}.{pair}", f"{owner} has {pair} besides {given[0]}", "keep one of them")
    for pair in given:
        count = len(getattr(control, pair))
        if count != 2:
            yield parsed.fault(f"{path}.{pair}", f"{owner} has {count} values in {pair}", "write two: for false and for true")


def _state_faults(parsed: ParsedConfig, path: str, batching: SequenceBatching) -> Iterator[Fault]:
    for index, state in enumerate(batching.state):
        where = f"{path}.state[{index}]"
        owner = f"state '{state.input_name}' of model '{parsed.config.name}'"
        if any(other.input_name == state.input_name for other in batching.state[:index]):
            yield parsed.fault(f"{where}.input_name", f"{owner} is given twice", "write the name of another input")
        if len(state.initial_state) > 1:
            message = f"{owner} has {len(state.initial_state)} initial states"
            yield parsed.fault(f"{where}.initial_state", message, "keep one of them")
        for number, initial in enumerate(state.initial_state):
            yield from _initial_state_faults(parsed, f"{where}.initial_state[{number}]", owner, state, initial)


def _initial_state_faults(parsed: ParsedConfig, path: str, owner: str, state: State, initial: InitialState) -> Iterator[Fault]:
    if not initial.name:
        yield parsed.fault(f"{path}.name", f"the initial {owner} has no name", 'write name: "..."')
    if initial.state_data is None:
        yield parsed.fault(path, f"the initial {owner} has no data", 'write zero_data: true, or data_file: "..."')
    if initial.data_type is not state.data_type:
        message = f"the initial {owner} has the data type {initial.data_type.config}"
        yield parsed.fault(f"{path}.data_type", message, f"write {state.data_type.config}")
    fits = len(initial.dims) == len(state.dims) and all(
        size > 0 and wanted in (-1, size) for size, wanted in zip(initial.dims, state.dims, strict=True)
    )
    if not fits:
        message = f"the initial {owner} has dims {list(initial.dims)}, but the state {list(state.dims)}"
        yield parsed.fault(f"{path}.dims", message, "write the state's dims, with a size in place of each -1")
