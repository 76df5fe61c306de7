"""DLPack where numpy's own does not suffice: BF16, and capsules without an owner to ask."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from moorage_python.runtime.failures import TritonModelException

_CPU, _BFLOAT, _BF16_BITS = 1, 4, 16
_FRESH, _USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter))

_Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)

_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, _Destructor)
_is = ctypes.pythonapi.PyCapsule_IsValid
_is.restype, _is.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)

# The same for a capsule that is being destroyed, of which no reference may be made.
_is_at = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_pointer_at = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))

_exported: dict[int, tuple[Any, ...]] = {}
"""What each exported tensor needs while someone uses it, by address."""


def _release(managed: Any) -> None:
    _exported.pop(ctypes.addressof(managed.contents), None)


def _drop(capsule: int) -> None:
    """The capsule goes; if nobody has taken its tensor, that goes as well."""
    if _is_at(capsule, _FRESH):
        _exported.pop(_pointer_at(capsule, _FRESH), None)


_release_callback = _Deleter(_release)
_drop_callback = _Destructor(_drop)


def export(array: np.ndarray) -> Any:
    """A capsule over a BF16 array."""
    array = np.ascontiguousarray(array)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    managed = _Managed()
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.ndim = array.ctypes.data, _CPU, array.ndim
    tensor.code, tensor.bits, tensor.lanes = _BFLOAT, _BF16_BITS, 1
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = _release_callback
    address = ctypes.addressof(managed)
    _exported[address] = (managed, shape, array)
    return _new(address, _FRESH, _drop_callback)


def take(name: str, source: Any) -> np.ndarray:
    """An array over the data of a capsule, or of an object that makes one."""
    if not _is_capsule(source):
        if not hasattr(source, "__dlpack__"):
            raise TritonModelException(f"tensor '{name}': {type(source).__name__} is no DLPack capsule and has no __dlpack__")
        if source.__dlpack_device__()[0] != _CPU:
            raise TritonModelException(f"tensor '{name}': its data lies on a GPU; move it to the CPU first")
        source = source.__dlpack__()
    tensor = _contents(source).tensor
    if (tensor.code, tensor.bits) == (_BFLOAT, _BF16_BITS):
        return _take_bf16(source)
    return np.from_dlpack(_Owner(source))


class _Owner:
    """Hands a capsule to numpy, which wants an object to ask."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_CPU, 0)


def _take_bf16(capsule: Any) -> np.ndarray:
    """A copy of a BF16 capsule's data; the capsule is used up."""
    import ml_dtypes  # noqa: PLC0415 - optional: it may be missing in a model's own environment

    managed = _contents(capsule)
    tensor = managed.tensor
    shape = tuple(tensor.shape[index] for index in range(tensor.ndim))
    array = np.empty(shape, dtype=ml_dtypes.bfloat16)
    _check_contiguous(tensor, shape)
    if array.nbytes:
        ctypes.memmove(array.ctypes.data, tensor.data + tensor.byte_offset, array.nbytes)
    _rename(capsule, _USED)
    if managed.deleter:
        managed.deleter(ctypes.pointer(managed))
    return array


def _check_contiguous(tensor: Any, shape: tuple[int, ...]) -> None:
    if not tensor.strides:
        return
    expected = 1
    for index in reversed(range(len(shape))):
        if shape[index] != 1 and tensor.strides[index] != expected:
            raise TritonModelException("a DLPack tensor must be contiguous; call .contiguous() on it first")
        expected *= shape[index]


def _is_capsule(source: Any) -> bool:
    return type(source).__name__ == "PyCapsule" and bool(_is(source, _FRESH))


def _contents(capsule: Any) -> Any:
    return _Managed.from_address(_pointer(capsule, _FRESH))
