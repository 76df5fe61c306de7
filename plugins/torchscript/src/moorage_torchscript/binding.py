"""Binds the tensors of a configuration to the arguments and results of a TorchScript module. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from moorage.backend import Signature, TensorSpec
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput, SequenceBatching
from moorage.errors import ConfigError, Fault
from moorage.types import DataType
from moorage_torchscript.arguments import SCALARS, Argument, Result, Shape
from moorage_torchscript.naming import Convention, Naming, place

OUTPUT = "OUTPUT__0"


@frozen
class Binding:
    """Where each input goes and each output comes from.

    `inputs` are slots by name: positions of arguments, or in `gathered` form (one list or table takes all inputs) their order.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    conventions: tuple[Convention, Convention]
    gathered: Shape | None
    arguments: tuple[Argument, ...]
    result: Result

    def argument(self, name: str) -> Argument | None:
        """The argument that an input is, None if it is a part of one."""
        return None if self.gathered else self.arguments[self.inputs[name]]

    def signature(self) -> Signature:
        """What the file declares, under the names of the configuration: types only where they are strings, no shapes."""
        return Signature(
            tuple(TensorSpec(name, self._input_type(name), None) for name in self.inputs),
            tuple(TensorSpec(name, self._output_type(name), None) for name in self.outputs),
        )

    def _input_type(self, name: str) -> DataType | None:
        argument = self.argument(name)
        return DataType.BYTES if argument and argument.shape in (Shape.TEXTS, Shape.TEXT) else None

    def _output_type(self, name: str) -> DataType | None:
        parts = self.result.parts or (self.result.shape,)
        position = self.outputs[name]
        return DataType.BYTES if position < len(parts) and parts[position] is Shape.TEXTS else None


def bind(config: ModelConfig, arguments: tuple[Argument, ...], result: Result) -> Binding:
    """Bind a configuration. Raises ConfigError with all that does not fit, and with what to write where nothing is written."""
    _refuse_incomplete(config, arguments, result)
    gathered = _gathered(arguments)
    inputs, input_faults = _inputs(config, arguments, gathered)
    outputs = place(output_names(config), (), result.count, field="output")
    faults = [*_unusable(arguments, gathered), *input_faults, *outputs.faults, *_unfed(arguments, inputs, gathered)]
    faults += _strings_for_tensors(config, arguments, inputs, gathered)
    faults += _with_scalars(config, arguments, inputs, gathered)
    if faults:
        raise ConfigError(faults, config.name)
    return Binding(inputs.positions, outputs.positions, (inputs.convention, outputs.convention), gathered, arguments, result)


def input_names(config: ModelConfig) -> list[str]:
    """All inputs that the model is fed with: those of requests, then those that the server makes."""
    names = [item.name for item in config.input]
    names += [name for batch_input in config.batch_input for name in batch_input.target_name]
    if isinstance(config.scheduling, SequenceBatching):
        names += [control.name for control in config.scheduling.control_input]
        names += [state.input_name for state in config.scheduling.state]
    return list(dict.fromkeys(names))


def output_names(config: ModelConfig) -> list[str]:
    """All outputs that are taken from the model: those of responses, then the states that the server keeps."""
    states = config.scheduling.state if isinstance(config.scheduling, SequenceBatching) else ()
    return list(dict.fromkeys([*(item.name for item in config.output), *(state.output_name for state in states)]))


def _inputs(config: ModelConfig, arguments: Sequence[Argument], gathered: Shape | None) -> tuple[Naming, tuple[Fault, ...]]:
    names = input_names(config)
    if gathered is Shape.TABLE:
        return Naming(Convention.ARGUMENT, {name: number for number, name in enumerate(names)}), ()
    if gathered is Shape.TENSORS:
        naming = place(names, (), len(names), field="input")
    else:
        naming = place(names, [argument.name for argument in arguments], len(arguments), field="input")
    return naming, naming.faults


def _gathered(arguments: Sequence[Argument]) -> Shape | None:
    """The form in which a single argument takes all inputs at once, if it does."""
    only = arguments[0].shape if len(arguments) == 1 else None
    return only if only in (Shape.TABLE, Shape.TENSORS) else None


def _unusable(arguments: Sequence[Argument], gathered: Shape | None) -> list[Fault]:
    """Arguments that no input can be, unless they may be left out."""
    if gathered:
        return []
    known = {Shape.TENSOR, Shape.TEXTS, *SCALARS}
    return [
        Fault(
            f"the forward method's argument '{argument.name}' has type {argument.text}, which no input can be",
            field="input",
            advice="take tensors, lists of str, or one Dict[str, Tensor] or List[Tensor] alone",
        )
        for argument in arguments
        if argument.shape not in known and not argument.optional
    ]


def _unfed(arguments: Sequence[Argument], naming: Naming, gathered: Shape | None) -> list[Fault]:
    if gathered:
        return []
    fed = set(naming.positions.values())
    missing = [argument.name for number, argument in enumerate(arguments) if not argument.optional and number not in fed]
    if not missing:
        return []
    message = f"the model takes {len(arguments)} input(s), the configuration gives {len(fed)}; nothing is given for: "
    return [Fault(message + ", ".join(missing), field="input", advice="add them")]


def _strings_for_tensors(
    config: ModelConfig, arguments: Sequence[Argument], naming: Naming, gathered: Shape | None
) -> list[Fault]:
    """PyTorch has no tensors of strings."""
    strings = {item.name: number for number, item in enumerate(config.input) if item.data_type is DataType.BYTES}
    taken = [(name, None if gathered else arguments[at]) for name, at in naming.positions.items() if at < len(arguments)]
    return [
        Fault(
            f"'{name}' is TYPE_STRING, but the model takes a Tensor there, and PyTorch has no tensors of strings",
            field=f"input[{strings[name]}].data_type",
            advice="let the forward method take List[str], or give the tensor's type",
        )
        for name, argument in taken
        if name in strings and (argument is None or argument.shape is Shape.TENSOR)
    ]


def _with_scalars(config: ModelConfig, arguments: Sequence[Argument], naming: Naming, gathered: Shape | None) -> list[Fault]:
    """A number or a text is one for the whole batch, which requests that are put together cannot agree on."""
    if gathered or not config.batches:
        return []
    taken = [(name, arguments[at]) for name, at in naming.positions.items() if at < len(arguments)]
    return [
        Fault(f"'{name}' is one {argument.text} for a whole batch", field="max_batch_size", advice="write max_batch_size: 0")
        for name, argument in taken
        if argument.shape in SCALARS
    ]


def _refuse_incomplete(config: ModelConfig, arguments: Sequence[Argument], result: Result) -> None:
    open_inputs = [item for item in config.input if _is_open(item)]
    open_outputs = [item for item in config.output if _is_open(item)]
    if config.input and config.output and not open_inputs and not open_outputs:
        return
    message = (
        "a TorchScript file tells no data types and shapes, so the configuration must give those of every input and output"
    )
    names = [item.name for item in config.input] or [argument.name for argument in arguments if not argument.optional]
    outputs = [item.name for item in config.output] or [f"OUTPUT__{number}" for number in range(result.count or 1)]
    inputs_text, outputs_text = _sample("input", names), _sample("output", outputs)
    advice = f"for example {inputs_text} {outputs_text}, with your types and sizes; the method is forward"
    signature = f"({', '.join(f'{argument.name}: {argument.text}' for argument in arguments)}) -> {result.text}"
    raise ConfigError([Fault(message, field="input, output", advice=advice + signature)], config.name)


def _is_open(item: ModelInput | ModelOutput) -> bool:
    return item.data_type is DataType.INVALID or not item.dims


def _sample(field: str, names: Sequence[str]) -> str:
    tensors = ", ".join(f'{{ name: "{name}" data_type: TYPE_FP32 dims: [ 3 ] }}' for name in names)
    return f"{field} [ {tensors} ]"
