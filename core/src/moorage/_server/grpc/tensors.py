"""Input tensors out of ModelInferRequest: raw contents, which stay where they are, and typed ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from moorage.errors import RequestError
from moorage.types import DataType, Tensor
from moorage.types.tensor import bytes_array, decode_bytes

Raw = bytes | memoryview

_TYPED: Final = {
    DataType.BOOL: "bool_contents",
    DataType.INT8: "int_contents",
    DataType.INT16: "int_contents",
    DataType.INT32: "int_contents",
    DataType.INT64: "int64_contents",
    DataType.UINT8: "uint_contents",
    DataType.UINT16: "uint_contents",
    DataType.UINT32: "uint_contents",
    DataType.UINT64: "uint64_contents",
    DataType.FP32: "fp32_contents",
    DataType.FP64: "fp64_contents",
    DataType.BYTES: "bytes_contents",
}
"""Where the elements of each data type travel; FP16 and BF16 only travel raw."""


def read_inputs(inputs: Sequence[Any], raws: Sequence[Raw]) -> dict[str, Tensor]:
    """The tensors of a request by name. Raises RequestError naming the input."""
    if raws and len(raws) != len(inputs):
        raise RequestError(
            f"{len(raws)} raw_input_contents for {len(inputs)} inputs: give one for each, or none{_unraw(inputs, raws)}"
        )
    tensors: dict[str, Tensor] = {}
    for at, message in enumerate(inputs):
        name = message.name
        if name in tensors:
            raise RequestError(f"input '{name}' is given twice")
        tensors[name] = _raw(message, raws[at]) if raws else _typed(message)
    return tensors


def _unraw(inputs: Sequence[Any], raws: Sequence[Raw]) -> str:
    return f" (no data for input '{inputs[len(raws)].name}')" if len(raws) < len(inputs) else ""


def _datatype(message: Any) -> DataType:
    datatype = DataType.from_wire(message.datatype)
    if datatype is None:
        raise RequestError(f"input '{message.name}' has the unknown datatype '{message.datatype}'")
    return datatype


def _raw(message: Any, raw: Raw) -> Tensor:
    name = message.name
    datatype = _datatype(message)
    shape = tuple(message.shape)
    if message.HasField("contents"):
        raise RequestError(f"input '{name}' has contents beside raw_input_contents; give one of the two")
    if datatype is DataType.BYTES:
        return Tensor(name, datatype, _bytes(name, decode_bytes(raw, name), shape))
    expected = _count(name, shape) * datatype.size
    if len(raw) != expected:
        raise RequestError(
            f"input '{name}' has {len(raw)} bytes of data, but shape {list(shape)} of {datatype.wire} takes {expected}"
        )
    return Tensor(name, datatype, _shaped(name, np.frombuffer(raw, datatype.numpy) if raw else _nothing(datatype), shape))


def _nothing(datatype: DataType) -> np.ndarray:
    return np.empty(0, datatype.numpy)


def _typed(message: Any) -> Tensor:
    name = message.name
    datatype = _datatype(message)
    values = _elements(message, datatype)
    shape = tuple(message.shape)
    if datatype is DataType.BYTES:
        return Tensor(name, datatype, _bytes(name, list(values), shape))
    _check_count(name, len(values), shape)
    return Tensor(name, datatype, _shaped(name, _array(name, values, datatype), shape))


def _elements(message: Any, datatype: DataType) -> Sequence[Any]:
    """The typed contents, which must be in the field of the data type and in no other."""
    expected = _TYPED.get(datatype)
    if expected is None:
        raise RequestError(f"input '{message.name}': {datatype.wire} can be sent in raw_input_contents only")
    for field, values in message.contents.ListFields():
        if field.name != expected:
            raise RequestError(
                f"input '{message.name}' has its data in {field.name}, but that of {datatype.wire} belongs in {expected}"
            )
        return values  # type: ignore[no-any-return]
    return ()


def _array(name: str, values: Sequence[Any], datatype: DataType) -> np.ndarray:
    try:
        return np.fromiter(values, datatype.numpy, len(values))
    except OverflowError as error:
        limits = np.iinfo(datatype.numpy)
        index, number = next((at, one) for at, one in enumerate(values) if not limits.min <= one <= limits.max)
        raise RequestError(f"input '{name}': element {index}, {number}, is out of range for {datatype.wire}") from error


def _bytes(name: str, elements: Sequence[bytes], shape: tuple[int, ...]) -> np.ndarray:
    _check_count(name, len(elements), shape)
    return _shaped(name, bytes_array(elements, (len(elements),)), shape)


def _count(name: str, shape: tuple[int, ...]) -> int:
    if any(size < 0 for size in shape):
        raise RequestError(f"input '{name}' has the shape {list(shape)}: no dimension may be negative")
    return math.prod(shape)


def _check_count(name: str, given: int, shape: tuple[int, ...]) -> None:
    expected = _count(name, shape)
    if given != expected:
        raise RequestError(f"input '{name}' has {given} elements, but shape {list(shape)} takes {expected}")


def _shaped(name: str, array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise RequestError(f"input '{name}' has a shape that no tensor can have: {error}") from error
