"""What an engine tells: its tensors, and the shapes that its optimization profiles take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import frozen

from moorage.backend import Signature, TensorSpec
from moorage.errors import Unsupported
from moorage.types import DataType

_TYPES = {
    "FLOAT": DataType.FP32,
    "HALF": DataType.FP16,
    "BF16": DataType.BF16,
    "INT8": DataType.INT8,
    "UINT8": DataType.UINT8,
    "INT32": DataType.INT32,
    "INT64": DataType.INT64,
    "BOOL": DataType.BOOL,
}


@frozen
class EngineTensor:
    """An input or output. `shape` has -1 for any size."""

    name: str
    datatype: DataType
    shape: tuple[int, ...]
    is_input: bool
    on_host: bool
    """It lies in the memory of the host: its values are a shape."""

    @property
    def spec(self) -> TensorSpec:
        return TensorSpec(self.name, self.datatype, self.shape)


@frozen
class Bounds:
    """The least, the best and the greatest shape that an input may have in a profile; of a shape tensor, its values."""

    least: tuple[int, ...]
    best: tuple[int, ...]
    most: tuple[int, ...]

    def hold(self, shape: Sequence[int]) -> bool:
        return len(shape) == len(self.least) and all(
            low <= size <= high for low, size, high in zip(self.least, shape, self.most, strict=True)
        )

    def distance(self, shape: Sequence[int]) -> int:
        """How far a shape is from the best one."""
        return sum(abs(size - best) for size, best in zip(shape, self.best, strict=True))

    def __str__(self) -> str:
        return f"{list(self.least)} to {list(self.most)}"


def read_tensors(engine: Any, model: str) -> tuple[EngineTensor, ...]:
    """All inputs and outputs. Raises Unsupported naming one that no request can carry."""
    return tuple(_tensor(engine, engine.get_tensor_name(index), model) for index in range(engine.num_io_tensors))


def _tensor(engine: Any, name: str, model: str) -> EngineTensor:
    is_input = engine.get_tensor_mode(name).name == "INPUT"
    kind = engine.get_tensor_dtype(name).name
    where = f"model '{model}': {'input' if is_input else 'output'} '{name}'"
    if kind not in _TYPES:
        raise Unsupported(
            f"{where} has type {kind}, which requests cannot carry; build the plan with one of {', '.join(_TYPES)}"
        )
    layout = engine.get_tensor_format_desc(name)
    if "linear" not in layout.lower():
        raise Unsupported(f"{where} has the format '{layout}'; build the plan with linear inputs and outputs")
    on_host = engine.get_tensor_location(name).name == "HOST"
    return EngineTensor(name, _TYPES[kind], tuple(engine.get_tensor_shape(name)), is_input, on_host)


def read_bounds(engine: Any, tensors: Iterable[EngineTensor], profile: int) -> Mapping[str, Bounds]:
    """What a profile allows for each input."""
    found = {}
    for tensor in tensors:
        if tensor.is_input:
            read = engine.get_tensor_profile_values if tensor.on_host else engine.get_tensor_profile_shape
            values = read(profile, tensor.name) if tensor.on_host else read(tensor.name, profile)
            if len(values) == 3:
                found[tensor.name] = Bounds(*(tuple(int(size) for size in shape) for shape in values))
    return found


def read_signature(tensors: Sequence[EngineTensor], bounds: Sequence[Mapping[str, Bounds]]) -> Signature:
    """What the engine declares; the largest batch is the one that the most generous of the profiles takes."""
    return Signature(
        tuple(tensor.spec for tensor in tensors if tensor.is_input),
        tuple(tensor.spec for tensor in tensors if not tensor.is_input),
        max_batch_size=max((_largest_batch(tensors, one) for one in bounds), default=None),
    )


def _largest_batch(tensors: Sequence[EngineTensor], bounds: Mapping[str, Bounds]) -> int:
    """0 if an input is a shape, which has no rows."""
    inputs = [tensor for tensor in tensors if tensor.is_input]
    if any(tensor.on_host or not tensor.shape for tensor in inputs):
        return 0
    return min((bounds[tensor.name].most[0] for tensor in inputs if tensor.name in bounds), default=0)
