"""Tensors whose elements are JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import NoneType
from typing import Any, Final

import numpy as np

from moorage.errors import RequestError
from moorage.types import DataType
from moorage.types.tensor import bytes_array

_DEEPEST = 100
_MOST_DIMENSIONS = 32
_GREATEST_SIZE = 2**63 - 1
_INTEGER: Final[frozenset[type]] = frozenset({int})
_FLOAT: Final[frozenset[type]] = frozenset({int, float, NoneType})

_ELEMENTS: Final[dict[DataType, frozenset[type]]] = {
    DataType.BOOL: frozenset({bool}),
    DataType.UINT8: _INTEGER,
    DataType.UINT16: _INTEGER,
    DataType.UINT32: _INTEGER,
    DataType.UINT64: _INTEGER,
    DataType.INT8: _INTEGER,
    DataType.INT16: _INTEGER,
    DataType.INT32: _INTEGER,
    DataType.INT64: _INTEGER,
    DataType.FP16: _FLOAT,
    DataType.BF16: _FLOAT,
    DataType.FP32: _FLOAT,
    DataType.FP64: _FLOAT,
    DataType.BYTES: frozenset({str}),
}
_WANTED: Final = {bool: "true or false", int: "whole numbers", float: "numbers", str: "strings"}


def array_from_json(name: str, datatype: DataType, shape: Sequence[int], data: object) -> np.ndarray:
    """The array of an input's `data`: a JSON array, nested in any way, with as many elements as the shape has.

    null stands for NaN in floating-point tensors. Raises RequestError that names the input and the first wrong element.
    """
    count = element_count(name, shape)
    if type(data) is not list:
        raise RequestError(f"input '{name}': `data` is {_kind(data)}, not an array")
    kinds = set(map(type, data))
    if list in kinds:
        data = _flatten(name, data)
        kinds = set(map(type, data))
    if not kinds <= _ELEMENTS[datatype]:
        raise _wrong_kind(name, datatype, data)
    if len(data) != count:
        raise RequestError(f"input '{name}': `data` has {len(data)} elements, shape {list(shape)} has {count}")
    if datatype is DataType.BYTES:
        return bytes_array([text.encode() for text in data], shape)
    return _numbers(name, datatype, data).reshape(tuple(shape))


def element_count(name: str, shape: Sequence[int]) -> int:
    """The number of elements of a tensor of this shape, which comes from outside."""
    if len(shape) > _MOST_DIMENSIONS:
        raise RequestError(f"input '{name}': `shape` has {len(shape)} dimensions, at most {_MOST_DIMENSIONS} are possible")
    count = 1
    for size in shape:
        if not 0 <= size <= _GREATEST_SIZE:
            raise RequestError(f"input '{name}': `shape` {list(shape)} has a size that is negative or too large")
        count *= size
    # numpy refuses a shape whose other sizes overflow, even when there are no elements.
    if (count or prod(size for size in shape if size)) > _GREATEST_SIZE:
        raise RequestError(f"input '{name}': `shape` {list(shape)} is too large")
    return count


def _numbers(name: str, datatype: DataType, data: list[Any]) -> np.ndarray:
    dtype = datatype.numpy
    try:
        if dtype.kind in "bui":
            return np.array(data, dtype=dtype)
        with np.errstate(over="ignore"):
            array = np.array(data, dtype=dtype)
    except OverflowError:
        raise _out_of_range(name, datatype, data) from None
    # JSON has no infinity: one that is here came from a number that the type cannot hold.
    if np.isinf(array).any():
        raise _out_of_range(name, datatype, data)
    return array


def _flatten(name: str, data: list[Any]) -> list[Any]:
    flat: list[Any] = []
    stack = [iter(data)]
    while stack:
        for element in stack[-1]:
            if type(element) is not list:
                flat.append(element)
            elif list in set(map(type, element)):
                if len(stack) >= _DEEPEST - 1:
                    raise RequestError(f"input '{name}': `data` is nested more than {_DEEPEST} deep")
                stack.append(iter(element))
                break
            else:
                flat.extend(element)
        else:
            stack.pop()
    return flat


def _wrong_kind(name: str, datatype: DataType, data: list[Any]) -> RequestError:
    allowed = _ELEMENTS[datatype]
    index, element = next((i, e) for i, e in enumerate(data) if type(e) not in allowed)
    wanted = next(text for kind, text in reversed(_WANTED.items()) if kind in allowed)
    return RequestError(f"input '{name}': element {index} of `data` is {_kind(element)}; {datatype.wire} takes {wanted}")


def _out_of_range(name: str, datatype: DataType, data: list[Any]) -> RequestError:
    index = next((i for i, element in enumerate(data) if element is not None and not _fits(datatype, element)), 0)
    shown = str(data[index])[:40]
    return RequestError(f"input '{name}': element {index} of `data`, {shown}, is out of range for {datatype.wire}")


def _fits(datatype: DataType, element: int | float) -> bool:
    try:
        with np.errstate(over="ignore"):
            return bool(np.isfinite(np.array([element], dtype=datatype.numpy))[0])
    except OverflowError:
        return False


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    return str(value).lower() if isinstance(value, bool) else repr(value)[:40]
