"""Arrays into the tensors of a request and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, Final

import ml_dtypes
import numpy as np

from moorage.errors import RequestError
from moorage.types import DataType
from moorage_openvino.faults import reason
from moorage_openvino.ports import Port

Reader = Callable[[Any], np.ndarray]
"""Takes the view of an output, of strings the tensor; gives a copy."""

_MOST_BYTES: Final = 1 << 24
_MOST_STRINGS: Final = 64
"""Strings are handed over in arrays in which each is as long as the longest: so many bytes or strings at a time."""


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
        tensor = self._tensor(self.port.element_type, [len(elements)])
        for begin, end in _pieces(elements):
            piece = self._tensor(tensor, [begin], [end])
            piece.bytes_data = np.array(elements[begin:end], dtype=np.bytes_)
        tensor.shape = array.shape
        return tensor


def _pieces(elements: Sequence[bytes]) -> Iterator[tuple[int, int]]:
    """Ranges of elements that do not take too much memory, each as long as the longest of its range."""
    begin = longest = 0
    for index, element in enumerate(elements):
        widest = max(longest, len(element))
        if index > begin and widest * (index + 1 - begin) > _MOST_BYTES:
            yield begin, index
            begin, widest = index, len(element)
        longest = widest
    if elements:
        yield begin, len(elements)


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
    shape, count = tuple(tensor.shape), tensor.size
    array = np.empty(count, dtype=object)
    flat = _flat(tensor) if count else tensor
    for begin in range(0, count, _MOST_STRINGS):
        end = min(begin + _MOST_STRINGS, count)
        array[begin:end] = _text(type(tensor)(flat, [begin], [end])).astype(object)
    return array.reshape(shape)


def _flat(tensor: Any) -> Any:
    """A copy of one dimension."""
    flat = type(tensor)(tensor.element_type, tensor.shape)
    tensor.copy_to(flat)
    flat.shape = [tensor.size]
    return flat


def _text(strings: Any) -> np.ndarray:
    """The strings of a tensor of one dimension, each as long as the longest.

    Where all are empty OpenVINO gives each a byte of memory that it has not written, which looks like strings of one byte: then
    they are read beside a longer one.
    """
    array: np.ndarray = strings.bytes_data
    if array.itemsize > 1:
        return array
    make, count = type(strings), strings.size
    longer = make(strings.element_type, [count + 1])
    strings.copy_to(make(longer, [0], [count]))
    make(longer, [count], [count + 1]).bytes_data = np.array([b"longer"])
    array = longer.bytes_data
    return array[:count]


def _bf16(view: np.ndarray) -> np.ndarray:
    """A copy of BF16, which OpenVINO says is FP16."""
    array: np.ndarray = view.view(ml_dtypes.bfloat16).copy()
    return array
