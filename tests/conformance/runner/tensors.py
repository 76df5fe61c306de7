"""Tensors as they are written in cases, as bytes on the wire, and back."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

NUMPY: Final[dict[str, str]] = {
    "BOOL": "?",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
CONTENT_FIELD: Final[dict[str, str]] = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
SHOWN_DIGITS: Final = {"FP16": 4, "FP32": 7, "FP64": 14}


def flat(data: Any) -> list[Any]:
    """The leaves of nested lists."""
    if isinstance(data, list | tuple):
        return [leaf for item in data for leaf in flat(item)]
    return [data]


def as_bytes(value: Any) -> bytes:
    """A BYTES element: text, `hex:00ff`, or `repeat:N` for N bytes."""
    if isinstance(value, str) and value.startswith("hex:"):
        return bytes.fromhex(value[4:])
    if isinstance(value, str) and value.startswith("repeat:"):
        return b"x" * int(value[7:])
    return value if isinstance(value, bytes) else str(value).encode()


def as_text(raw: bytes) -> str:
    """Bytes as text where they are text, else `hex:…`."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "hex:" + raw.hex()


def encode(datatype: str, data: Any) -> bytes:
    """The wire bytes of a tensor written in a case."""
    values = flat(data)
    if datatype == "BYTES":
        parts = [as_bytes(value) for value in values]
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    if datatype == "BF16":
        wide = np.array(values, dtype="<f4").view("<u4")
        return (wide >> 16).astype("<u2").tobytes()
    dtype: DTypeLike = NUMPY[datatype]
    return np.array(values, dtype=dtype).tobytes()


def decode(datatype: str, raw: bytes) -> Any:
    """Wire bytes as a plain list, or `hex:…` for an unknown datatype."""
    if datatype == "BYTES":
        return _elements(raw)
    if datatype == "BF16":
        wide = np.frombuffer(raw, dtype="<u2").astype("<u4") << 16
        return [tidy(value, 4) for value in wide.view("<f4").tolist()]
    if datatype not in NUMPY:
        return "hex:" + raw.hex()
    values = np.frombuffer(raw, dtype=NUMPY[datatype]).tolist()
    digits = SHOWN_DIGITS.get(datatype)
    return values if digits is None else [tidy(value, digits) for value in values]


def _elements(raw: bytes) -> list[str]:
    found, at = [], 0
    while at + 4 <= len(raw):
        size = int.from_bytes(raw[at : at + 4], "little")
        found.append(as_text(raw[at + 4 : at + 4 + size]))
        at += 4 + size
    return found


def tidy(value: float, digits: int) -> float:
    """A float cut to the digits its type carries."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else value
