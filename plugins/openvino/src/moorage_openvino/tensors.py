"""Arrays into the tensors of a request and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from moorage.errors import RequestError
from moorage.types import DataType
from moorage_openvino.faults import reason
from moorage_openvino.ports import Port

Reader = Callable[[Any], np.ndarray]
"""Takes the view of an output, of strings the tensor; gives a copy."""


class Writer:
    """Feeds one input. Arrays are used where they lie: they must be kept until the run is over."""

    def __init__(self, runtime: ModuleType, port: Port) -> None:
        self.port = port
        self._tensor = runtime.Tensor
        self._dtype = port.datatype.numpy

    def feed(self, request: Any, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Set the tensor of the request; the array that it refers to. Raises RequestError for an array that does not fit."""
        port = self.port
        array = inputs.get(port.name)
        if array is None:
            raise RequestError(f"model '{port.model}': input '{port.name}' is missing")
        if array.dtype != self._dtype:
            raise RequestError(f"model '{port.model}': input '{port.name}' must be {port.datatype.wire}, but is {array.dtype}")
        array = self._laid_out(array)
        try:
            request.set_input_tensor(port.index, self._made(array))
        except RuntimeError as error:
            raise RequestError(
                f"model '{port.model}': input '{port.name}' of shape {list(array.shape)} does not fit the model: "
                f"{reason(error)}"
            ) from error
        return array

    def _laid_out(self, array: np.ndarray) -> np.ndarray:
        return np.asarray(array, order="C")

    def _made(self, array: np.ndarray) -> Any:
        return self._tensor(array, array.shape, self.port.element_type)


class IntegerWriter(Writer):
    """Integers of more than 31 bits, all of which OpenVINO computes with 32."""

    def _laid_out(self, array: np.ndarray) -> np.ndarray:
        self.port.check_range(array)
        return super()._laid_out(array)


class Bf16Writer(Writer):
    """BF16, which OpenVINO takes as the bits of it."""

    def _laid_out(self, array: np.ndarray) -> np.ndarray:
        return super()._laid_out(array).view(np.uint16)


class TextWriter(Writer):
    """Strings. They are copied into OpenVINO's own memory."""

    def _laid_out(self, array: np.ndarray) -> np.ndarray:
        return array

    def _made(self, array: np.ndarray) -> Any:
        elements = array.ravel().tolist()
        for index, element in enumerate(elements):
            if element.endswith(b"\0"):
                raise RequestError(
                    f"model '{self.port.model}': input '{self.port.name}': element {index} ends with a zero byte, "
                    "which OpenVINO for Python cuts off"
                )
        tensor = self._tensor(self.port.element_type, array.shape)
        if elements:
            tensor.bytes_data = np.array(elements, dtype=np.bytes_).reshape(array.shape)
        return tensor


def writer_of(runtime: ModuleType, port: Port) -> Writer:
    """What feeds this input."""
    if port.narrowed:
        return IntegerWriter(runtime, port)
    kinds: Mapping[DataType, type[Writer]] = {DataType.BF16: Bf16Writer, DataType.BYTES: TextWriter}
    return kinds.get(port.datatype, Writer)(runtime, port)


def reader_of(port: Port) -> Reader:
    """What takes this output."""
    if port.datatype is DataType.BYTES:
        return texts
    return _bf16 if port.datatype is DataType.BF16 else np.copy


def texts(tensor: Any) -> np.ndarray:
    """An object array of `bytes` from a tensor of strings: as bytes, since OpenVINO would replace what is no UTF-8."""
    array = np.empty(tuple(tensor.shape), dtype=object)
    if array.size:
        array[...] = tensor.bytes_data.astype(object)
    return array


def _bf16(view: np.ndarray) -> np.ndarray:
    """A copy of BF16, which OpenVINO says is FP16."""
    array: np.ndarray = view.view(ml_dtypes.bfloat16).copy()
    return array
