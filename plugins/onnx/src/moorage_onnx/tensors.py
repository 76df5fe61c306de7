"""Element types: what ONNX Runtime calls them, and the forms in which it takes and gives strings and BF16."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np

from moorage.backend import Signature, TensorSpec
from moorage.errors import RequestError, Unsupported
from moorage.types import DataType
from moorage_onnx.onnx_file import FileFacts

ONNX_BFLOAT16 = 16
"""The number of BFLOAT16 in onnx.proto's TensorProto.DataType."""

_TYPES = {
    "tensor(bool)": DataType.BOOL,
    "tensor(uint8)": DataType.UINT8,
    "tensor(uint16)": DataType.UINT16,
    "tensor(uint32)": DataType.UINT32,
    "tensor(uint64)": DataType.UINT64,
    "tensor(int8)": DataType.INT8,
    "tensor(int16)": DataType.INT16,
    "tensor(int32)": DataType.INT32,
    "tensor(int64)": DataType.INT64,
    "tensor(float16)": DataType.FP16,
    "tensor(float)": DataType.FP32,
    "tensor(double)": DataType.FP64,
    "tensor(string)": DataType.BYTES,
    "tensor(bfloat16)": DataType.BF16,
}


def read_signature(session: Any, model: str, facts: FileFacts) -> Signature:
    """The inputs and outputs of a session. Raises Unsupported naming a tensor that no request can carry."""
    return Signature(
        tuple(_spec(argument, model, "input", facts) for argument in session.get_inputs()),
        tuple(_spec(argument, model, "output", facts) for argument in session.get_outputs()),
    )


def _spec(argument: Any, model: str, role: str, facts: FileFacts) -> TensorSpec:
    datatype = _TYPES.get(argument.type)
    if datatype is None:
        raise Unsupported(
            f"model '{model}': {role} '{argument.name}' has type {argument.type}, which requests cannot carry; "
            f"export the model with plain tensors ({', '.join(_TYPES)})"
        )
    if argument.name in facts.unranked:
        return TensorSpec(argument.name, datatype, None)
    shape = tuple(size if isinstance(size, int) and size >= 0 else -1 for size in argument.shape)
    return TensorSpec(argument.name, datatype, shape)


def text_input(model: str, name: str, array: np.ndarray) -> np.ndarray:
    """An array of `str` from one of `bytes`. Raises RequestError if an element is not UTF-8."""
    elements = array.ravel().tolist()
    texts = np.empty(len(elements), dtype=object)
    try:
        texts[:] = [element.decode() for element in elements]
    except UnicodeDecodeError as error:
        index = elements.index(error.object)
        raise RequestError(
            f"input '{name}' of model '{model}': element {index} is not valid UTF-8 (at byte {error.start}), "
            "and strings in ONNX models are"
        ) from error
    return texts.reshape(array.shape)


def bytes_output(array: np.ndarray) -> np.ndarray:
    """An array of `bytes` from one of `str`."""
    raw = np.empty(array.size, dtype=object)
    raw[:] = [element.encode() for element in array.ravel().tolist()]
    return raw.reshape(array.shape)


def bf16_bits(array: np.ndarray) -> np.ndarray:
    """The bits of a BF16 array."""
    return np.ascontiguousarray(array).view(np.uint16)


def bf16_output(value: Any) -> np.ndarray:
    """A copy of an `OrtValue` of BF16 that lies in the CPU's memory."""
    shape = tuple(value.shape())
    array = np.empty(shape, dtype=ml_dtypes.bfloat16)
    if array.nbytes:
        ctypes.memmove(array.ctypes.data, value.data_ptr(), array.nbytes)
    return array
