"""Completes a configuration from what the model file declares. Pure; what the user has written stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from attrs import evolve

from moorage._repository.fit import check, model_dims, side_inputs, side_outputs
from moorage.backend import Signature, TensorSpec
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import DynamicBatching, ModelConfig, ModelInput, ModelOutput, TensorReshape
from moorage.types import DataType

__all__ = ["check", "exact", "fill"]

T = TypeVar("T", ModelInput, ModelOutput)


def fill(parsed: ParsedConfig, signature: Signature, default_max_batch_size: int) -> ModelConfig:
    """The configuration with what it leaves open taken from the signature.

    - `max_batch_size`, if not given, becomes what the file allows, or `default_max_batch_size` if it does not say, for a model
      that can batch: one whose inputs and outputs all have a first dimension of any size. `dims` that are given decide it
      instead: with or without that dimension.
    - `dynamic_batching` is switched on for a batch size over 1 where no scheduler is given, unless `input` and `output` are.
    - Inputs that are missing are added; outputs only if none is given. Missing data types and dims are filled in by name.
    """
    config = parsed.config
    inputs = [tensor for tensor in signature.inputs if tensor.name not in side_inputs(config)]
    outputs = [tensor for tensor in signature.outputs if tensor.name not in side_outputs(config)]
    size = config.max_batch_size
    if "max_batch_size" not in parsed.given:
        size = _batch_size(signature, default_max_batch_size) if _batches(config, inputs, outputs) else 0
    scheduling = config.scheduling
    if scheduling is None and size > 1 and not _complete(parsed):
        scheduling = DynamicBatching()
    return evolve(
        config,
        max_batch_size=size,
        scheduling=scheduling,
        input=_tensors([*config.input, *_missing(ModelInput, config.input, inputs)], inputs, batched=size > 0),
        output=_tensors(config.output or _missing(ModelOutput, (), outputs), outputs, batched=size > 0),
    )


def _batch_size(signature: Signature, default: int) -> int:
    return max(default, 0) if signature.max_batch_size is None else signature.max_batch_size


def exact(config: ModelConfig, signature: Signature) -> ModelConfig:
    """The configuration as metadata show it: sizes of outputs that it leaves open are those that the model file declares."""
    shapes = {spec.name: spec.shape for spec in signature.outputs if spec.shape is not None}
    outputs = tuple(_exact(tensor, shapes.get(tensor.name, ()), config.batches) for tensor in config.output)
    return evolve(config, output=outputs)


def _exact(output: ModelOutput, shape: tuple[int, ...], batches: bool) -> ModelOutput:
    declared = shape[1:] if batches else shape
    if output.reshape is not None or len(declared) != len(output.dims):
        return output
    return evolve(output, dims=tuple(size if dim == -1 else dim for dim, size in zip(output.dims, declared, strict=True)))


def _complete(parsed: ParsedConfig) -> bool:
    return {"input", "output"} <= parsed.given


def _batches(config: ModelConfig, inputs: Iterable[TensorSpec], outputs: Iterable[TensorSpec]) -> bool:
    """Whether the model can batch, and the dims that are given leave room for it."""
    specs = (*inputs, *outputs)
    if not specs or not all(spec.shape and spec.shape[0] == -1 for spec in specs):
        return False
    shapes = {spec.name: spec.shape for spec in specs}
    tensors: tuple[ModelInput | ModelOutput, ...] = (*config.input, *config.output)
    return all(
        len(model_dims(tensor)) + 1 == len(shape)
        for tensor in tensors
        if tensor.dims and (shape := shapes.get(tensor.name)) is not None
    )


def _missing(kind: type[T], given: Sequence[T], specs: Iterable[TensorSpec]) -> list[T]:
    names = {tensor.name for tensor in given}
    return [kind(name=spec.name) for spec in specs if spec.name not in names]


def _tensors(tensors: Sequence[T], specs: Iterable[TensorSpec], *, batched: bool) -> tuple[T, ...]:
    by_name = {spec.name: spec for spec in specs}
    specced = ((tensor, by_name.get(tensor.name)) for tensor in tensors)
    return tuple(tensor if spec is None else _filled(tensor, spec, batched=batched) for tensor, spec in specced)


def _filled(tensor: T, spec: TensorSpec, *, batched: bool) -> T:
    """One tensor with its gaps filled. A tensor without dimensions of its own is shown as one of one element, reshaped."""
    if tensor.data_type is DataType.INVALID and spec.datatype is not None:
        tensor = evolve(tensor, data_type=spec.datatype)
    if tensor.dims or spec.shape is None:
        return tensor
    dims = spec.shape[1:] if batched else spec.shape
    return evolve(tensor, dims=dims) if dims else evolve(tensor, dims=(1,), reshape=tensor.reshape or TensorReshape())
