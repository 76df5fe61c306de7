"""Named tensors, and the length-prefixed form in which BYTES elements travel."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
from attrs import define

from moorage.errors import RequestError
from moorage.types.datatype import DataType


@define(eq=False, slots=True)
class Tensor:
    """A named array with its data type.

    `array` has the tensor's shape. It is often a read-only view of a request's body: never write into it. BYTES tensors are
    object arrays of `bytes`, BF16 tensors have the `ml_dtypes.bfloat16` dtype.
    """

    name: str
    datatype: DataType
    array: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


def decode_bytes(data: bytes | bytearray | memoryview, name: str) -> list[bytes]:
    """Elements of a BYTES tensor from their wire form: a 4-byte little-endian length before each.

    Raises RequestError naming the input when a length does not fit the data.
    """
    view = memoryview(data)
    end = len(view)
    elements: list[bytes] = []
    at = 0
    while at < end:
        if end - at < 4:
            raise RequestError(f"input '{name}': {end - at} stray bytes after element {len(elements)}; a length takes 4")
        (size,) = struct.unpack_from("<I", view, at)
        at += 4
        if size > end - at:
            raise RequestError(f"input '{name}': element {len(elements)} announces {size} bytes but only {end - at} follow")
        elements.append(bytes(view[at : at + size]))
        at += size
    return elements


def encode_bytes(elements: Sequence[bytes | str]) -> bytes:
    """The wire form of BYTES elements; text becomes UTF-8."""
    parts: list[bytes] = []
    for element in elements:
        raw = element if isinstance(element, bytes) else str(element).encode()
        parts.append(struct.pack("<I", len(raw)))
        parts.append(raw)
    return b"".join(parts)


def bytes_array(elements: Sequence[bytes], shape: Sequence[int]) -> np.ndarray:
    """An object array of `bytes` with the given shape (the counts must fit)."""
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(tuple(shape))
