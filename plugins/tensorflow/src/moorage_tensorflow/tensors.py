"""Element types and shapes: what TensorFlow calls them, and what requests can carry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """An input or output: its name in requests with type and shape, and the tensor of the graph behind it.

    A tensor without dimensions is one of one element in requests, which cannot carry it as it is.
    """

    spec: TensorSpec
    tensor: str
    scalar: bool = False

    @classmethod
    def of(cls, name: str, datatype: DataType, shape: tuple[int, ...] | None, tensor: str) -> Endpoint:
        """One whose tensor has this shape; None if its rank is unknown."""
        scalar = shape == ()
        return cls(TensorSpec(name, datatype, (1,) if scalar else shape), tensor, scalar)


@frozen
class Endpoints:
    """What goes into a graph and comes out of it."""

    inputs: tuple[Endpoint, ...]
    outputs: tuple[Endpoint, ...]


@frozen
class Built:
    """A graph that was brought into TensorFlow's default graph."""

    endpoints: Endpoints
    graph_def: Any
    start: Callable[[Any], None]
    """Gives the graph in a session what it starts with: variables, tables."""


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


class Scalars:
    """Tensors without dimensions, which have one in requests, and those that turn out to have none."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.inputs = frozenset(one.spec.name for one in endpoints.inputs if one.scalar)
        self.outputs = frozenset(one.spec.name for one in endpoints.outputs if one.scalar or one.spec.shape is None)
        self._certain = frozenset(one.spec.name for one in endpoints.outputs if one.scalar)

    def given(self, names: Sequence[str], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The arrays as the graph takes them."""
        return [array.reshape(()) if name in self.inputs else array for name, array in zip(names, arrays, strict=True)]

    def taken(self, names: Sequence[str], results: Sequence[Any]) -> list[np.ndarray]:
        """The results as requests take them. TensorFlow gives a bare value for what has no dimensions."""
        return [self._array(name, value) for name, value in zip(names, results, strict=True)]

    def _array(self, name: str, value: Any) -> np.ndarray:
        if isinstance(value, np.ndarray):
            return value
        array = np.empty((1,) if name in self._certain else (), getattr(value, "dtype", np.dtype(object)))
        array[...] = value
        return array


class ShapeCheck:
    """Do arrays have the shapes that a model declares? What it declares is taken apart once."""

    def __init__(self, model: str, specs: Sequence[TensorSpec]) -> None:
        self._model = model
        self._fixed = {
            spec.name: (len(spec.shape), [(axis, size) for axis, size in enumerate(spec.shape) if size >= 0])
            for spec in specs
            if spec.shape is not None
        }
        self._declared = {spec.name: spec.shape for spec in specs}

    def __call__(self, names: Sequence[str], arrays: Sequence[np.ndarray]) -> None:
        """Raises RequestError naming the first that has not."""
        for name, array in zip(names, arrays, strict=True):
            rule = self._fixed.get(name)
            if rule is None:
                continue
            rank, fixed = rule
            shape = array.shape
            if len(shape) != rank or any(shape[axis] != size for axis, size in fixed):
                declared = list(self._declared[name] or ())
                raise RequestError(
                    f"model '{self._model}': input '{name}' has shape {list(shape)}, but the model takes {declared}"
                )
