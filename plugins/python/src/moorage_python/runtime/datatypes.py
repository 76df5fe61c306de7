"""Data types as models see them: Triton's numbers, its names in configurations, and numpy's types."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

BOOL, BYTES, BF16 = 1, 13, 14
_SCALARS: dict[int, Any] = {
    1: np.bool_,
    2: np.uint8,
    3: np.uint16,
    4: np.uint32,
    5: np.uint64,
    6: np.int8,
    7: np.int16,
    8: np.int32,
    9: np.int64,
    10: np.float16,
    11: np.float32,
    12: np.float64,
    13: np.object_,
}
NAMES = ("BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64")
_NUMBERS = {np.dtype(scalar): number for number, scalar in _SCALARS.items()}
_BY_CONFIG_NAME = {f"TYPE_{name}": _SCALARS[number] for number, name in enumerate(NAMES, start=1)}
_BY_CONFIG_NAME |= {"TYPE_STRING": np.object_, "TYPE_BOOL": bool}


def number_of(dtype: np.dtype) -> int | None:
    """Triton's number for arrays of this dtype, or None. Strings of any numpy kind are 13."""
    found = _NUMBERS.get(dtype)
    if found is None and dtype.kind in "SU":
        return BYTES
    if found is None and dtype.name == "bfloat16":
        return BF16
    return found


def name_of(number: int) -> str:
    """The name of a data type in requests."""
    return {BYTES: "BYTES", BF16: "BF16"}.get(number) or NAMES[number - 1]


def numpy_to_triton_type(data_type: Any) -> int | None:
    """Triton's number for a numpy type; None if there is none."""
    return number_of(np.dtype(data_type))


def triton_to_numpy_type(data_type: int) -> Any:
    """The numpy type for Triton's number; None if there is none."""
    return _bfloat16() if data_type == BF16 else _SCALARS.get(data_type)


def triton_string_to_numpy(triton_type_string: str) -> Any:
    """The numpy type for a name in a configuration, such as "TYPE_FP32". Raises KeyError for an unknown name."""
    return _bfloat16() if triton_type_string == "TYPE_BF16" else _BY_CONFIG_NAME[triton_type_string]


def _bfloat16() -> Any:
    import ml_dtypes  # noqa: PLC0415 - optional: it may be missing in a model's own environment

    return ml_dtypes.bfloat16


def as_bytes(element: object) -> bytes:
    """One element of a string tensor as bytes; text becomes UTF-8."""
    return element if isinstance(element, bytes) else str(element).encode()


def serialize_byte_tensor(input_tensor: np.ndarray) -> bytes | tuple[()] | None:
    """The wire form of a string tensor: each element after its length in 4 bytes. None if it holds no strings."""
    if input_tensor.size == 0:
        return ()
    if input_tensor.dtype.kind not in "OS":
        return None
    parts: list[bytes] = []
    for element in input_tensor.ravel().tolist():
        raw = as_bytes(element)
        parts += (struct.pack("<I", len(raw)), raw)
    return b"".join(parts)


def deserialize_bytes_tensor(encoded_tensor: bytes) -> np.ndarray:
    """A flat object array of `bytes` out of the wire form."""
    elements: list[bytes] = []
    at = 0
    while at < len(encoded_tensor):
        (size,) = struct.unpack_from("<I", encoded_tensor, at)
        at += 4
        if at + size > len(encoded_tensor):
            raise ValueError(f"element {len(elements)} announces {size} bytes, but only {len(encoded_tensor) - at} follow")
        elements.append(bytes(encoded_tensor[at : at + size]))
        at += size
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array
