"""The one table of tensor data types."""

from __future__ import annotations

import enum

import ml_dtypes
import numpy as np


class DataType(enum.Enum):
    """A tensor's element type.

    The value is the number that `model_config.proto` gives it. `wire` is the name in requests ("FP32", "BYTES"), `config` the
    name in configurations ("TYPE_FP32", "TYPE_STRING"), `size` the bytes of one element (0 for BYTES, whose elements vary) and
    `numpy` the dtype that holds it (object arrays of `bytes` for BYTES).
    """

    INVALID = 0
    BOOL = 1
    UINT8 = 2
    UINT16 = 3
    UINT32 = 4
    UINT64 = 5
    INT8 = 6
    INT16 = 7
    INT32 = 8
    INT64 = 9
    FP16 = 10
    FP32 = 11
    FP64 = 12
    BYTES = 13
    BF16 = 14

    wire: str
    config: str
    size: int
    numpy: np.dtype

    @classmethod
    def from_wire(cls, name: str) -> DataType | None:
        """The type with this name in requests, or None."""
        return _BY_WIRE.get(name)

    @classmethod
    def from_config(cls, name: str) -> DataType | None:
        """The type with this name in configurations, or None."""
        return _BY_CONFIG.get(name)

    @classmethod
    def from_numpy(cls, dtype: np.dtype) -> DataType | None:
        """The type that holds arrays of this dtype, or None. Strings of any numpy kind are BYTES."""
        return DataType.BYTES if dtype.kind in "OSU" else _BY_NUMPY.get(dtype)


_NUMPY = {
    DataType.BOOL: np.dtype("?"),
    DataType.UINT8: np.dtype("<u1"),
    DataType.UINT16: np.dtype("<u2"),
    DataType.UINT32: np.dtype("<u4"),
    DataType.UINT64: np.dtype("<u8"),
    DataType.INT8: np.dtype("<i1"),
    DataType.INT16: np.dtype("<i2"),
    DataType.INT32: np.dtype("<i4"),
    DataType.INT64: np.dtype("<i8"),
    DataType.FP16: np.dtype("<f2"),
    DataType.FP32: np.dtype("<f4"),
    DataType.FP64: np.dtype("<f8"),
    DataType.BYTES: np.dtype("O"),
    DataType.BF16: np.dtype(ml_dtypes.bfloat16),
}

for _type in DataType:
    _type.wire = _type.name
    _type.config = "TYPE_STRING" if _type is DataType.BYTES else f"TYPE_{_type.name}"
    _type.numpy = _NUMPY.get(_type, np.dtype("V0"))
    _type.size = 0 if _type in (DataType.BYTES, DataType.INVALID) else _type.numpy.itemsize

_BY_WIRE = {t.wire: t for t in DataType if t is not DataType.INVALID}
_BY_CONFIG = {t.config: t for t in DataType}
_BY_NUMPY = {dtype: t for t, dtype in _NUMPY.items()}
