"""Tensors as models see them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from moorage_python.runtime import dlpack
from moorage_python.runtime.datatypes import BF16, BYTES, as_bytes, number_of
from moorage_python.runtime.failures import TritonModelException

_CPU = (1, 0)
_SMALL = 16384


class Tensor:
    """A named array. Make one from a numpy array, or with `from_dlpack` from a tensor of any framework."""

    __slots__ = ("_array", "_name", "_number")

    def __init__(self, name: str, numpy_array: np.ndarray) -> None:
        if not name:
            raise TritonModelException("a tensor needs a name that is not empty")
        array = np.asarray(numpy_array)
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("="))
        number = number_of(array.dtype)
        if number is None:
            raise TritonModelException(
                f"tensor '{name}': arrays of {array.dtype} have no data type in Triton; convert, e.g. array.astype('float32')"
            )
        self._name = name
        self._array = array
        self._number = number

    @classmethod
    def received(cls, name: str, array: np.ndarray, number: int) -> Tensor:
        """A tensor of a request, whose type is known to be right."""
        self = cls.__new__(cls)
        self._name = name
        self._array = array
        self._number = number
        return self

    def name(self) -> str:
        """The tensor's name."""
        return self._name

    def shape(self) -> list[int]:
        """The sizes of the dimensions, batch first."""
        return list(self._array.shape)

    def triton_dtype(self) -> int:
        """Triton's number of the data type."""
        return self._number

    def is_cpu(self) -> bool:
        """Whether the data lies in the CPU's memory; here always."""
        return True

    def as_numpy(self) -> np.ndarray:
        """The array, writable: what came in read-only is copied. BF16 is `ml_dtypes.bfloat16`, strings are `bytes`."""
        array = self._array
        if not array.flags.writeable:
            array = self._array = array.copy()
        return array

    def to_dlpack(self) -> Any:
        """A DLPack capsule over the data."""
        return self.__dlpack__()

    def __dlpack__(self, *, stream: Any = None, **_: Any) -> Any:
        if self._number == BYTES:
            raise TritonModelException(f"tensor '{self._name}': DLPack has no string tensors")
        if self._number == BF16:
            return dlpack.export(self.as_numpy())
        return self.as_numpy().__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    @staticmethod
    def from_dlpack(name: str, tensor: Any) -> Tensor:
        """A tensor over the data of another framework's, which must lie in the CPU's memory and be contiguous."""
        if not name:
            raise TritonModelException("a tensor needs a name that is not empty")
        return Tensor(name, dlpack.take(name, tensor))

    def __repr__(self) -> str:
        return f"Tensor({self._name!r}, {self._array.dtype}, {list(self._array.shape)})"


def settled(tensor: Tensor, received: Collection[np.ndarray] = ()) -> np.ndarray:
    """The tensor's array as it may leave the model: strings as `bytes`, and nothing that the model may still write to.

    A large array goes as it is if only the tensor holds it, or if it is one of `received`, the arrays of the request; one that
    the model may keep (a buffer that it uses again, a view of it) is copied.
    """
    if tensor._number == BYTES:
        return _bytes_array(tensor._array)
    if tensor._array.nbytes <= _SMALL:
        return np.array(tensor._array)
    if _is_alone(tensor) or any(tensor._array is array for array in received):
        return tensor._array
    return np.array(tensor._array)


def _bytes_array(array: np.ndarray) -> np.ndarray:
    result = np.empty(array.size, dtype=object)
    result[:] = [as_bytes(element) for element in array.ravel().tolist()]
    return result.reshape(array.shape)


def _is_alone(tensor: Tensor) -> bool:
    """Whether nobody but the tensor holds the array, or what it is a view of."""
    if sys.getrefcount(tensor._array) > _ALONE:
        return False
    if tensor._array.base is None:
        return True
    return type(tensor._array.base) is np.ndarray and sys.getrefcount(tensor._array.base) <= _ALONE


_probe = Tensor("probe", np.zeros(1))
_ALONE = sys.getrefcount(_probe._array)
del _probe
