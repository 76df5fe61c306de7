"""Warm-up requests: what `model_warmup` says, as requests that an instance runs before the first real one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from attrs import frozen

from moorage.config.schema import DataFile, ModelConfig, RandomData, Warmup, WarmupInput
from moorage.errors import ConfigError, Fault, RequestError
from moorage.types import DataType, InferRequest, Tensor
from moorage.types.tensor import bytes_array, decode_bytes

FOLDER = "warmup"
"""Where data files lie, in the model's folder."""


@frozen
class Sample:
    """The tensors of one warm-up setting: `batch_size` requests with these inputs run together, `count` times over."""

    name: str
    tensors: tuple[Tensor, ...]
    batch_size: int
    count: int

    def executions(self, model: str) -> Iterator[list[InferRequest]]:
        """The requests of each execution."""
        for _ in range(self.count):
            yield [InferRequest(model, {tensor.name: tensor for tensor in self.tensors}) for _ in range(self.batch_size)]


def samples(config: ModelConfig, model_path: Path) -> Sequence[Sample]:
    """The samples of a configuration; those with batch size 0 are left out.

    Raises ConfigError naming setting, input and file.
    """
    return [_sample(config, item, index, model_path) for index, item in enumerate(config.model_warmup) if item.batch_size]


def _sample(config: ModelConfig, warmup: Warmup, index: int, model_path: Path) -> Sample:
    batched = {item.name for item in config.input} if config.batches else set()
    tensors = []
    for name, item in warmup.inputs.items():
        try:
            array = _data(name, item, model_path)
        except (OSError, ValueError, RequestError) as error:
            fault = Fault(f"warm-up '{warmup.name}': {error}", field=f"model_warmup[{index}].inputs['{name}']")
            raise ConfigError([fault], config.name) from error
        tensors.append(Tensor(name, item.data_type, array[np.newaxis] if name in batched else array))
    return Sample(warmup.name, tuple(tensors), warmup.batch_size, max(1, warmup.count))


def _data(name: str, item: WarmupInput, model_path: Path) -> np.ndarray:
    if any(dim < 0 for dim in item.dims):
        raise ValueError(f"dims {list(item.dims)} must all be given, none can be -1")
    if isinstance(item.data, DataFile):
        return _from_file(name, item, item.data.path, model_path / FOLDER)
    if item.data is None:
        raise ValueError("set zero_data, random_data or input_data_file")
    count = int(np.prod(item.dims, dtype=np.int64))
    if item.data_type is DataType.BYTES:
        return bytes_array([b""] * count, item.dims)
    if isinstance(item.data, RandomData):
        return _random(item.data_type, count).reshape(item.dims)
    return np.zeros(item.dims, item.data_type.numpy)


def _random(datatype: DataType, count: int) -> np.ndarray:
    generator = np.random.default_rng(0)
    if datatype.numpy.kind in "iu":
        limits = np.iinfo(datatype.numpy)
        return generator.integers(limits.min, limits.max, count, datatype.numpy, endpoint=True)
    numbers = generator.random(count)
    return (numbers < 0.5) if datatype is DataType.BOOL else numbers.astype(datatype.numpy)


def _from_file(name: str, item: WarmupInput, filename: str, folder: Path) -> np.ndarray:
    path = folder / filename
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"data file '{filename}' is outside {folder}")
    raw = path.read_bytes()
    if item.data_type is DataType.BYTES:
        return bytes_array(decode_bytes(raw, name), item.dims)
    count = int(np.prod(item.dims, dtype=np.int64))
    if len(raw) < count * item.data_type.size:
        raise ValueError(f"data file '{filename}' has {len(raw)} bytes, {count * item.data_type.size} are needed")
    return np.frombuffer(raw, item.data_type.numpy, count).reshape(item.dims)
