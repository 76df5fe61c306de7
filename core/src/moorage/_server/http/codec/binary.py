"""Tensors in binary: the bytes of their elements in order, little-endian; BYTES elements each after a 4-byte length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage._server.http.codec.elements import element_count
from moorage.errors import RequestError
from moorage.types import DataType
from moorage.types.tensor import bytes_array, decode_bytes, encode_bytes


def array_from_bytes(name: str, datatype: DataType, shape: Sequence[int], data: memoryview) -> np.ndarray:
    """The array in these bytes: a view of them, or a copy if they do not lie on a boundary of the element type."""
    count = element_count(name, shape)
    if datatype is DataType.BYTES:
        elements = decode_bytes(data, name)
        if len(elements) != count:
            raise RequestError(f"input '{name}': the data has {len(elements)} elements, shape {list(shape)} has {count}")
        return bytes_array(elements, shape)
    wanted = count * datatype.size
    if len(data) != wanted:
        raise RequestError(
            f"input '{name}': {len(data)} bytes of data, but shape {list(shape)} of {datatype.wire} takes {wanted}"
        )
    array = np.frombuffer(data, dtype=datatype.numpy) if count else np.empty(0, dtype=datatype.numpy)
    if not array.flags.aligned:
        array = array.copy()
    return array.reshape(tuple(shape))


def bytes_of_array(datatype: DataType, array: np.ndarray) -> bytes | memoryview:
    """The wire form of an array: its own memory where that is possible."""
    if datatype is DataType.BYTES:
        return encode_bytes(array.ravel().tolist())
    if not array.size:
        return b""
    flat = np.ascontiguousarray(array, dtype=datatype.numpy).reshape(-1)
    return flat.view(np.uint8).data
