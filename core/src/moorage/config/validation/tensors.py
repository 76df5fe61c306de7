"""Checks of inputs, outputs, and the batch inputs and outputs that refer to them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import TENSORRT, backend_of
from moorage.config.schema import BatchInput, BatchOutput, InputFormat, ModelInput, ModelOutput
from moorage.errors import Fault
from moorage.types.datatype import DataType

WILDCARD = -1
_SIZE_ADVICE = "write 1 or more, or -1 for any size"
_BATCH_TYPES = (DataType.INT32, DataType.FP32)


def tensor_faults(parsed: ParsedConfig, platforms: Mapping[str, str], *, complete: bool) -> Iterator[Fault]:
    """Faults of `input`, `output`, `batch_input` and `batch_output`."""
    config = parsed.config
    tensorrt = backend_of(config, platforms) in ("", TENSORRT)
    for index, one in enumerate(config.input):
        check = _TensorCheck(parsed, f"input[{index}]", "input", one, complete=complete, tensorrt=tensorrt)
        yield from check.faults()
        if one.format is not InputFormat.FORMAT_NONE and one.dims and len(one.dims) != 3:
            message = f"has the format {one.format.name} but {len(one.dims)} dims"
            yield check.fault("dims", message, "write 3 dims, or no format")
    for index, output in enumerate(config.output):
        check = _TensorCheck(parsed, f"output[{index}]", "output", output, complete=complete, tensorrt=tensorrt)
        yield from check.faults()
    yield from _batch_tensor_faults(parsed, complete=complete)


class _TensorCheck:
    """The checks of one input or output."""

    def __init__(
        self, parsed: ParsedConfig, path: str, word: str, tensor: ModelInput | ModelOutput, *, complete: bool, tensorrt: bool
    ) -> None:
        self._parsed = parsed
        self._path = path
        self._tensor = tensor
        self._complete = complete
        self._tensorrt = tensorrt
        self._owner = f"{word} '{tensor.name}' of model '{parsed.config.name}'"

    def fault(self, part: str, message: str, advice: str) -> Fault:
        return self._parsed.fault(f"{self._path}.{part}", f"{self._owner} {message}", advice)

    def faults(self) -> Iterator[Fault]:
        tensor = self._tensor
        if not tensor.name:
            yield self.fault("name", "has no name", 'write name: "..."')
        if self._complete and tensor.data_type is DataType.INVALID:
            yield self.fault("data_type", "has no data_type", "write data_type: TYPE_FP32, or the type it has")
        if self._complete and not tensor.dims:
            yield self.fault("dims", "has no dims", "write dims: [1] for a single element, or the shape it has")
        yield from self._size_faults("dims", tensor.dims)
        yield from self._reshape_faults()
        yield from self._tensorrt_faults()

    def _size_faults(self, part: str, sizes: Sequence[int]) -> Iterator[Fault]:
        for index, size in enumerate(sizes):
            if size < 1 and size != WILDCARD:
                yield self.fault(f"{part}[{index}]", f"has the size {size} in {part.replace('.', ' ')}", _SIZE_ADVICE)

    def _reshape_faults(self) -> Iterator[Fault]:
        if self._tensor.reshape is None:
            return
        dims, shape = self._tensor.dims, self._tensor.reshape.shape
        yield from self._size_faults("reshape.shape", shape)
        if dims and all(size > 0 or size == WILDCARD for size in (*dims, *shape)) and not reshapes(dims, shape):
            message = f"has dims {list(dims)}, which cannot be reshaped to {list(shape)}"
            yield self.fault("reshape.shape", message, "write a shape of as many elements, with -1 at the matching places")

    def _tensorrt_faults(self) -> Iterator[Fault]:
        tensor = self._tensor
        if tensor.is_shape_tensor and not self._tensorrt:
            message = "is a shape tensor, which only TensorRT models have"
            yield self.fault("is_shape_tensor", message, "remove is_shape_tensor")
        if not tensor.is_non_linear_format_io:
            return
        if not self._tensorrt:
            message = "has a non-linear format, which only TensorRT models take"
            yield self.fault("is_non_linear_format_io", message, "remove is_non_linear_format_io")
        elif tensor.dims and len(tensor.dims) != 3:
            yield self.fault("dims", f"has a non-linear format but {len(tensor.dims)} dims", "write 3 dims")


def reshapes(dims: Sequence[int], shape: Sequence[int]) -> bool:
    """Whether tensors of `dims` can be seen as `shape`: as many elements before, between and after the sizes that are open."""
    return _chunks(dims) == _chunks(shape)


def _chunks(sizes: Sequence[int]) -> list[int]:
    """How many elements lie before, between and after the open sizes."""
    opens = [index for index, size in enumerate(sizes) if size == WILDCARD]
    edges = [-1, *opens, len(sizes)]
    return [math.prod(sizes[left + 1 : right]) for left, right in pairwise(edges)]


def _batch_tensor_faults(parsed: ParsedConfig, *, complete: bool) -> Iterator[Fault]:
    config = parsed.config
    inputs = {one.name for one in config.input}
    outputs = {one.name for one in config.output}
    for index, batch_input in enumerate(config.batch_input):
        path = f"batch_input[{index}]"
        yield from _source_faults(parsed, path, batch_input, inputs, complete=complete)
        if batch_input.data_type not in _BATCH_TYPES:
            message = f"a batch input of model '{config.name}' has the data type {batch_input.data_type.config}"
            yield parsed.fault(f"{path}.data_type", message, "write TYPE_INT32 or TYPE_FP32")
    for index, batch_output in enumerate(config.batch_output):
        path = f"batch_output[{index}]"
        yield from _source_faults(parsed, path, batch_output, inputs, complete=complete)
        yield from _target_faults(parsed, path, batch_output, outputs, complete=complete)


def _source_faults(
    parsed: ParsedConfig, path: str, tensor: BatchInput | BatchOutput, inputs: set[str], *, complete: bool
) -> Iterator[Fault]:
    owner = f"{tensor.kind.name} of model '{parsed.config.name}'"
    if len(tensor.source_input) != 1:
        message = f"{owner} has {len(tensor.source_input)} source inputs"
        yield parsed.fault(f"{path}.source_input", message, 'write one: source_input: "..."')
    for index, source in enumerate(tensor.source_input):
        if complete and source not in inputs:
            message = f"{owner} has the source input '{source}', which is no input"
            yield parsed.fault(f"{path}.source_input[{index}]", message, f"write one of {', '.join(sorted(inputs))}")


def _target_faults(
    parsed: ParsedConfig, path: str, tensor: BatchOutput, outputs: set[str], *, complete: bool
) -> Iterator[Fault]:
    owner = f"{tensor.kind.name} of model '{parsed.config.name}'"
    for index, target in enumerate(tensor.target_name):
        if complete and target not in outputs:
            message = f"{owner} has the target '{target}', which is no output"
            yield parsed.fault(f"{path}.target_name[{index}]", message, f"write one of {', '.join(sorted(outputs))}")
        if target in tensor.target_name[:index]:
            message = f"{owner} has the target '{target}' twice"
            yield parsed.fault(f"{path}.target_name[{index}]", message, "remove one of them")
