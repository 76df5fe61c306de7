"""The check that every request passes: compiled from the configuration when the model is loaded."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import evolve, frozen

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import RequestError
from moorage.types import DataType, InferRequest, InferResponse, Tensor

WILDCARD = -1


@frozen
class _Spec:
    """An input or output in the form that the check needs. `dims` leave out the batch dimension."""

    name: str
    datatype: DataType
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None
    batched: bool


class RequestCheck:
    """Refuses requests that do not fit the model, and gives tensors the shapes that the model itself works with."""

    def __init__(self, config: ModelConfig) -> None:
        self._model = config.name
        self._max_batch = config.max_batch_size
        self._inputs = {item.name: _spec(item, config.batches) for item in config.input}
        self._required = frozenset(item.name for item in config.input if not item.optional)
        self._output_names = tuple(item.name for item in config.output)
        self._outputs = frozenset(self._output_names)
        self._reshaped_outputs = {item.name: _spec(item, config.batches) for item in config.output if item.reshape}

    @property
    def output_names(self) -> tuple[str, ...]:
        """The outputs of the configuration, in its order."""
        return self._output_names

    def accept(self, request: InferRequest) -> int:
        """Check a request and reshape its inputs in place; the number of rows it adds to a batch (1 without batching).

        Raises RequestError naming model, input and what was expected.
        """
        inputs = request.inputs
        self._check_names(inputs.keys())
        batch = 0
        for tensor in inputs.values():
            spec = self._inputs[tensor.name]
            if tensor.datatype is not spec.datatype:
                given = tensor.datatype.wire
                raise RequestError(f"input '{tensor.name}' of model '{self._model}' is {spec.datatype.wire}, not {given}")
            shape = tensor.array.shape
            if spec.batched:
                batch = self._check_batch(tensor.name, shape, batch)
                shape = shape[1:]
            if shape != spec.dims and not _fits(shape, spec.dims):
                raise RequestError(self._shape_message(spec, tensor.array.shape))
            if spec.reshape is not None:
                inputs[tensor.name] = _reshaped(tensor, spec, spec.dims, spec.reshape)
        for output in request.outputs:
            if output.name not in self._outputs:
                raise RequestError(f"model '{self._model}' has no output '{output.name}', it has {_names(self._output_names)}")
        return batch or 1

    def restore(self, response: InferResponse) -> None:
        """Give the outputs of a response the shapes that clients see, where the configuration reshapes them."""
        if self._reshaped_outputs:
            response.outputs = [self._restored(tensor) for tensor in response.outputs]

    def _restored(self, tensor: Tensor) -> Tensor:
        spec = self._reshaped_outputs.get(tensor.name)
        return tensor if spec is None or spec.reshape is None else _reshaped(tensor, spec, spec.reshape, spec.dims)

    def _check_names(self, given: Iterable[str]) -> None:
        names = frozenset(given)
        unknown = names - self._inputs.keys()
        if unknown:
            raise RequestError(f"model '{self._model}' has no input {_names(sorted(unknown))}, it has {_names(self._inputs)}")
        missing = self._required - names
        if missing:
            raise RequestError(f"model '{self._model}' needs input {_names(sorted(missing))}, which the request lacks")

    def _check_batch(self, name: str, shape: tuple[int, ...], batch: int) -> int:
        if not shape:
            raise RequestError(
                f"input '{name}' of model '{self._model}' has no dimensions; the first is the batch, up to {self._max_batch}"
            )
        rows = shape[0]
        if batch and rows != batch:
            raise RequestError(
                f"input '{name}' of model '{self._model}' has batch size {rows}, another input of the request has {batch}"
            )
        if not 1 <= rows <= self._max_batch:
            raise RequestError(
                f"batch size {rows} of input '{name}' is outside 1..{self._max_batch}, what model '{self._model}' takes"
            )
        return rows

    def _shape_message(self, spec: _Spec, shape: tuple[int, ...]) -> str:
        expected = ([WILDCARD] if spec.batched else []) + list(spec.dims)
        note = f" (the first dimension is the batch, up to {self._max_batch})" if spec.batched else ""
        return f"input '{spec.name}' of model '{self._model}' has shape {list(shape)}, expected {expected}{note}"


def _spec(item: ModelInput | ModelOutput, batches: bool) -> _Spec:
    reshape = item.reshape.shape if item.reshape is not None else None
    return _Spec(item.name, item.data_type, item.dims, reshape, batches and not item.is_shape_tensor)


def _fits(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    return len(shape) == len(dims) and all(want in (WILDCARD, have) for have, want in zip(shape, dims, strict=True))


def _reshaped(tensor: Tensor, spec: _Spec, before: tuple[int, ...], after: tuple[int, ...]) -> Tensor:
    """The tensor with `before` dims turned into `after`; sizes of wildcards carry over in order."""
    shape = tensor.array.shape
    head = shape[:1] if spec.batched else ()
    sizes = iter(size for size, dim in zip(shape[len(head) :], before, strict=False) if dim == WILDCARD)
    target = tuple(next(sizes, WILDCARD) if dim == WILDCARD else dim for dim in after)
    return evolve(tensor, array=np.reshape(tensor.array, head + target))


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "none"
