"""Inputs and outputs of a model: their names, their data types, and the tensors that they take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

from moorage.backend import Signature, TensorSpec
from moorage.config.schema import ModelConfig
from moorage.errors import RequestError, Unsupported
from moorage.types import DataType

_TYPES = {
    "boolean": DataType.BOOL,
    "u8": DataType.UINT8,
    "u16": DataType.UINT16,
    "u32": DataType.UINT32,
    "u64": DataType.UINT64,
    "i8": DataType.INT8,
    "i16": DataType.INT16,
    "i32": DataType.INT32,
    "i64": DataType.INT64,
    "f16": DataType.FP16,
    "f32": DataType.FP32,
    "f64": DataType.FP64,
    "string": DataType.BYTES,
    "bf16": DataType.BF16,
}
_NARROWED = frozenset({DataType.UINT32, DataType.UINT64, DataType.INT64})
_LEAST, _MOST = -(2**31), 2**31 - 1


@frozen(eq=False)
class Port:
    """An input or output. `name` is its name in requests, `index` its place in the model."""

    model: str
    name: str
    index: int
    datatype: DataType
    element_type: Any
    shape: tuple[int, ...] | None
    """-1 is any size; None an unknown rank."""
    passes: bool
    """Nothing is computed: an input of this model is one of its outputs."""

    @property
    def narrowed(self) -> bool:
        """Whether OpenVINO computes with fewer bits than the numbers have, and gives wrong results for large ones."""
        return self.datatype in _NARROWED and not self.passes

    def check_range(self, array: np.ndarray) -> None:
        """Raise RequestError if a number has more than 32 bits, which are all that OpenVINO computes with."""
        if array.size and (array.max() > _MOST or (self.datatype is DataType.INT64 and array.min() < _LEAST)):
            raise RequestError(
                f"model '{self.model}': input '{self.name}' is {self.datatype.wire}, but OpenVINO computes with 32 bits: "
                f"its numbers must lie between {_LEAST} and {_MOST}"
            )


def own_names(port: Any) -> set[str]:
    """The names that the model itself gives an input or output; that of its operation if it gives none."""
    names: set[str] = port.names
    return names or {_operation(port).friendly_name}


def read_ports(model: Any, config: ModelConfig) -> tuple[list[Port], list[Port]]:
    """The inputs and outputs, under the names of the configuration where those are names of the model's.

    Raises Unsupported naming one that no request can carry.
    """
    given = [item.name for item in config.input], [item.name for item in config.output]
    inputs, outputs = (
        [_port(port, name, index, kind, config.name) for index, (port, name) in enumerate(zip(ports, names, strict=True))]
        for ports, names, kind in (
            (model.inputs, _names(model.inputs, given[0]), "input"),
            (model.outputs, _names(model.outputs, given[1]), "output"),
        )
    )
    return inputs, outputs


def signature(inputs: Sequence[Port], outputs: Sequence[Port], *, batches: bool, fixed_batch: int) -> Signature:
    """What the model declares. Batches of a fixed size are filled up by whoever runs it, so that they appear as any size."""
    specs = [tuple(_spec(port, fixed_batch) for port in ports) for ports in (inputs, outputs)]
    return Signature(specs[0], specs[1], max_batch_size=None if batches else 0)


def _spec(port: Port, fixed_batch: int) -> TensorSpec:
    shape = (-1, *port.shape[1:]) if fixed_batch and port.shape else port.shape
    return TensorSpec(port.name, port.datatype, shape)


def _names(ports: Sequence[Any], given: Sequence[str]) -> list[str]:
    """One name for each, no name twice."""
    chosen: list[str] = []
    for port in ports:
        own = own_names(port)
        liked = [*(name for name in given if name in own), *sorted(own), _operation(port).friendly_name]
        free = [name for name in liked if name not in chosen]
        chosen.append(free[0] if free else f"{liked[0]}:{port.get_index()}")
    return chosen


def _operation(port: Any) -> Any:
    """The operation that an input is, or whose result an output is."""
    node = port.node
    return node.input_value(0).node if node.get_type_name() == "Result" else node


def _port(port: Any, name: str, index: int, kind: str, model: str) -> Port:
    type_name = port.element_type.get_type_name()
    datatype = _TYPES.get(type_name)
    if datatype is None:
        raise Unsupported(
            f"model '{model}': {kind} '{name}' has type {type_name}, which requests cannot carry; "
            f"convert the model to one with plain tensors ({', '.join(_TYPES)})"
        )
    return Port(model, name, index, datatype, port.element_type, _shape(port.partial_shape), _passes(port, kind))


def _shape(shape: Any) -> tuple[int, ...] | None:
    if shape.rank.is_dynamic:
        return None
    return tuple(int(size.get_length()) if size.is_static else -1 for size in shape)


def _passes(port: Any, kind: str) -> bool:
    if kind == "output":
        return bool(_operation(port).get_type_name() == "Parameter")
    return all(target.get_node().get_type_name() == "Result" for target in port.get_target_inputs())
