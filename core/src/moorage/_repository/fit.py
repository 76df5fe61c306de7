"""Does a configuration fit the model file? Every way in which it does not, with what to write instead. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from moorage.backend import Signature, TensorSpec
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput, SequenceBatching
from moorage.errors import Fault
from moorage.types import DataType


def check(parsed: ParsedConfig, signature: Signature) -> list[Fault]:
    """The faults of a completed configuration against what the model file declares.

    Dims may be narrower than the model's. Those of an output may also be wider, since what the model yields is still right;
    those of an input may not, since the model would refuse what the configuration lets through.
    """
    config = parsed.config
    return [
        *_batch_size(parsed, signature),
        *_tensors(parsed, "input", config.input, signature.inputs),
        *_tensors(parsed, "output", config.output, signature.outputs),
        *_missing_inputs(parsed, signature),
        *_controls(parsed, signature),
    ]


def _batch_size(parsed: ParsedConfig, signature: Signature) -> Iterable[Fault]:
    size, most = parsed.config.max_batch_size, signature.max_batch_size
    if most and size > most:
        yield parsed.fault("max_batch_size", f"it is {size}, but the model takes batches of at most {most}", f"write {most}")


def model_dims(tensor: ModelInput | ModelOutput) -> tuple[int, ...]:
    """The dims as the model sees them, without the batch dimension."""
    return tensor.dims if tensor.reshape is None else tensor.reshape.shape


def side_inputs(config: ModelConfig) -> frozenset[str]:
    """Model inputs that the server feeds by itself, and that `input` need not list: controls, states, batch inputs."""
    names = [name for batch_input in config.batch_input for name in batch_input.target_name]
    if isinstance(config.scheduling, SequenceBatching):
        names += [control.name for control in config.scheduling.control_input]
        names += [state.input_name for state in config.scheduling.state]
    return frozenset(names)


def side_outputs(config: ModelConfig) -> frozenset[str]:
    """Model outputs that the server keeps for itself: states."""
    states = config.scheduling.state if isinstance(config.scheduling, SequenceBatching) else ()
    return frozenset(state.output_name for state in states)


def _tensors(
    parsed: ParsedConfig, kind: str, tensors: Sequence[ModelInput | ModelOutput], specs: Sequence[TensorSpec]
) -> Iterable[Fault]:
    by_name = {spec.name: spec for spec in specs}
    for number, tensor in enumerate(tensors):
        path = f"{kind}[{number}]"
        spec = by_name.get(tensor.name)
        if spec is None:
            yield _unknown(parsed, f"{path}.name", kind, tensor.name, by_name)
            continue
        if spec.datatype not in (None, tensor.data_type) and tensor.data_type is not DataType.INVALID:
            yield _wrong_type(parsed, path, spec, tensor)
        if spec.shape is not None and tensor.dims and not _shape_is_free(tensor):
            yield from _shape(parsed, path, tensor, spec.shape)


def _unknown(parsed: ParsedConfig, path: str, kind: str, name: str, known: Mapping[str, object]) -> Fault:
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    names = ", ".join(f"'{other}'" for other in known) or "none"
    advice = f"did you mean '{close[0]}'?" if close else ""
    return parsed.fault(path, f"the model has no {kind} '{name}'; its {kind}s are {names}", advice)


def _wrong_type(parsed: ParsedConfig, path: str, spec: TensorSpec, tensor: ModelInput | ModelOutput) -> Fault:
    declared = spec.datatype.config if spec.datatype is not None else ""
    message = f"it is {tensor.data_type.config}, but the model declares '{tensor.name}' as {declared}"
    return parsed.fault(f"{path}.data_type", message, f"write {declared}")


def _shape_is_free(tensor: ModelInput | ModelOutput) -> bool:
    """Ragged inputs and shape tensors reach the model in another shape than their dims."""
    return tensor.is_shape_tensor or (isinstance(tensor, ModelInput) and tensor.allow_ragged_batch)


def _shape(parsed: ParsedConfig, path: str, tensor: ModelInput | ModelOutput, shape: tuple[int, ...]) -> Iterable[Fault]:
    field = f"{path}.dims" if tensor.reshape is None else f"{path}.reshape.shape"
    dims = model_dims(tensor)
    if parsed.config.batches and (not shape or shape[0] != -1):
        yield parsed.fault(field, *_fixed_batch(parsed.config, tensor, shape))
        return
    own = shape[1:] if parsed.config.batches else shape
    if len(dims) != len(own):
        yield parsed.fault(field, *_wrong_rank(parsed.config, tensor, dims, shape))
    elif not all(_dim_fits(dim, declared, isinstance(tensor, ModelOutput)) for dim, declared in zip(dims, own, strict=True)):
        allowed = "; -1 in the model's place allows any size" if -1 in own else ""
        message = f"{_text(dims)} does not fit '{tensor.name}', which the model declares as {_text(own)}{allowed}"
        yield parsed.fault(field, message, f"write dims: {_text(own)}")


def _dim_fits(dim: int, declared: int, is_output: bool) -> bool:
    return declared in (dim, -1) or (is_output and dim == -1)


def _fixed_batch(config: ModelConfig, tensor: ModelInput | ModelOutput, shape: tuple[int, ...]) -> tuple[str, str]:
    size = f"max_batch_size {config.max_batch_size} needs a first dimension of any size"
    if not shape:
        return f"{size}, but the model declares '{tensor.name}' without dimensions", "write max_batch_size: 0"
    fixed = f"the model's first dimension of '{tensor.name}' is fixed at {shape[0]} (shape {_text(shape)})"
    return f"{size}, but {fixed}", f"write max_batch_size: 0 and dims: {_text(shape)}"


def _wrong_rank(
    config: ModelConfig, tensor: ModelInput | ModelOutput, dims: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[str, str]:
    own = shape[1:] if config.batches else shape
    message = f"{_text(dims)} has {len(dims)} dimensions, but the model declares '{tensor.name}' as {_text(shape)}"
    if config.batches:
        message += f", whose first is the batch that dims leave out when max_batch_size is {config.max_batch_size}"
    if not own:
        return message, "write dims: [1] and reshape { shape: [] }"
    batching = not config.batches and shape[0] == -1 and len(dims) == len(shape) - 1
    advice = f"write dims: {_text(own)}"
    return message, f"{advice}, or a max_batch_size of at least 1 if the first dimension is the batch" if batching else advice


def _missing_inputs(parsed: ParsedConfig, signature: Signature) -> Iterable[Fault]:
    listed = {tensor.name for tensor in parsed.config.input} | side_inputs(parsed.config)
    for spec in signature.inputs:
        if spec.name not in listed:
            kind = spec.datatype.config if spec.datatype is not None else "its type"
            yield parsed.fault(
                "input", f"the model needs input '{spec.name}', which is not listed", f"add it, with data_type {kind}"
            )


def _controls(parsed: ParsedConfig, signature: Signature) -> Iterable[Fault]:
    """Inputs that sequence batching is to feed must be the model's."""
    known = {spec.name: spec for spec in signature.inputs}
    scheduling = parsed.config.scheduling
    for number, control in enumerate(scheduling.control_input if isinstance(scheduling, SequenceBatching) else ()):
        if control.name not in known:
            yield _unknown(parsed, f"sequence_batching.control_input[{number}].name", "input", control.name, known)


def _text(shape: Sequence[int]) -> str:
    return f"[{', '.join(map(str, shape))}]"
