"""Element types and shapes: what TensorFlow calls them, and what requests can carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from moorage.backend import TensorSpec
from moorage.errors import RequestError, Unsupported
from moorage.types import DataType

_TYPES = {
    "bool": DataType.BOOL,
    "uint8": DataType.UINT8,
    "uint16": DataType.UINT16,
    "uint32": DataType.UINT32,
    "uint64": DataType.UINT64,
    "int8": DataType.INT8,
    "int16": DataType.INT16,
    "int32": DataType.INT32,
    "int64": DataType.INT64,
    "float16": DataType.FP16,
    "float32": DataType.FP32,
    "float64": DataType.FP64,
    "string": DataType.BYTES,
    "bfloat16": DataType.BF16,
}


@frozen
class Endpoint:
    """An input or output: its name in requests with type and shape, and the tensor of the graph behind it."""

    spec: TensorSpec
    tensor: str


@frozen
class Endpoints:
    """What goes into a graph and comes out of it."""

    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


def datatype(dtype: Any, model: str, role: str, name: str) -> DataType:
    """Our name for a `tf.DType`. Raises Unsupported naming a tensor that no request can carry."""
    found = known(dtype)
    if found is None:
        raise Unsupported(
            f"model '{model}': {role} '{name}' has type {dtype.base_dtype.name}, which requests cannot carry; "
            f"export the model with plain tensors ({', '.join(_TYPES)})"
        )
    return found


def known(dtype: Any) -> DataType | None:
    """Our name for a `tf.DType`, or None."""
    return _TYPES.get(dtype.base_dtype.name)


def sizes(shape: Any) -> tuple[int, ...] | None:
    """A `tf.TensorShape` with -1 for any size; None if the rank is unknown."""
    return None if shape.rank is None else tuple(-1 if size is None else size for size in shape.as_list())


class ShapeCheck:
    """Do arrays have the shapes that a model declares? What it declares is taken apart once."""

    def __init__(self, model: str, specs: Sequence[TensorSpec]) -> None:
        self._model = model
        self._rules = [_rule(spec) for spec in specs]

    def __call__(self, arrays: Sequence[np.ndarray]) -> None:
        """Raises RequestError naming the first that has not. The arrays are in the order of the specs."""
        for array, (name, declared, fixed) in zip(arrays, self._rules, strict=True):
            if declared is None:
                continue
            shape = array.shape
            if len(shape) != len(declared) or any(shape[axis] != size for axis, size in fixed):
                raise RequestError(
                    f"model '{self._model}': input '{name}' has shape {list(shape)}, but the model takes {list(declared)}"
                )


def _rule(spec: TensorSpec) -> tuple[str, tuple[int, ...] | None, list[tuple[int, int]]]:
    """Name, declared shape, and the axes of fixed size."""
    fixed = [(axis, size) for axis, size in enumerate(spec.shape or ()) if size >= 0]
    return spec.name, spec.shape, fixed
