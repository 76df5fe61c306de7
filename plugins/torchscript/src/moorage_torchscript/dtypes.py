"""Element types: what PyTorch calls them, and the way of arrays into tensors and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from moorage.errors import ModelError, RequestError
from moorage.types import DataType

_NAMES = {
    DataType.BOOL: "bool",
    DataType.UINT8: "uint8",
    DataType.UINT16: "uint16",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.INT8: "int8",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.FP16: "float16",
    DataType.FP32: "float32",
    DataType.FP64: "float64",
    DataType.BF16: "bfloat16",
}
ToTensor = Callable[[np.ndarray], Any]


def datatype_of(torch: Any, dtype: Any) -> DataType | None:
    """The data type that holds a `torch.dtype`, or None for one that requests cannot carry."""
    return next((datatype for datatype, name in _NAMES.items() if getattr(torch, name) is dtype), None)


def to_tensor(torch: Any, datatype: DataType, *, copy: bool) -> ToTensor:
    """A function from arrays of this data type to CPU tensors, which share the array's memory unless `copy`."""
    from_numpy, bfloat16 = torch.from_numpy, torch.bfloat16

    def convert(array: np.ndarray) -> Any:
        if copy or any(step < 0 for step in array.strides):
            array = array.copy()
        return from_numpy(array)

    def convert_bf16(array: np.ndarray) -> Any:
        return convert(array.view(np.int16)).view(bfloat16)

    return convert_bf16 if datatype is DataType.BF16 else convert


def to_array(torch: Any, tensor: Any, *, copy: bool) -> np.ndarray:
    """The array of a strided tensor on any device, which shares the tensor's memory unless `copy` or the device is another."""
    if tensor.dtype is torch.bfloat16:
        return to_array(torch, tensor.view(torch.int16), copy=copy).view(ml_dtypes.bfloat16)
    array: np.ndarray = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous().numpy()
    return array.copy() if copy else array


def texts(name: str, array: np.ndarray) -> list[str]:
    """The elements of a BYTES array as `str`. Raises RequestError if one is not UTF-8."""
    elements = array.ravel().tolist()
    try:
        return [element.decode() for element in elements]
    except UnicodeDecodeError as error:
        index = elements.index(error.object)
        raise RequestError(
            f"input '{name}': element {index} is not valid UTF-8 (at byte {error.start}), and strings in PyTorch are"
        ) from error


def text_array(name: str, elements: Sequence[str], shape: tuple[int, ...], model: str) -> np.ndarray:
    """A BYTES array of this shape (one size may be -1) from a model's list of strings. Raises ModelError if it does not fit."""
    array = np.empty(len(elements), dtype=object)
    array[:] = [element.encode() for element in elements]
    try:
        return array.reshape(shape)
    except ValueError as error:
        raise ModelError(
            f"model '{model}' gave {len(elements)} strings as output '{name}', which do not make the shape {list(shape)}"
        ) from error
