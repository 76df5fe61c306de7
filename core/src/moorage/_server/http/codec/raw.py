"""The raw binary request: a body that is nothing but the bytes of a model's only input."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from moorage._server.http.codec.binary import array_from_bytes
from moorage._server.http.codec.response import OutputForms
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import RequestError
from moorage.types import DataType, InferRequest, Tensor


def decode_raw(body: memoryview, name: str, version: int, config: ModelConfig) -> tuple[InferRequest, OutputForms]:
    """The request whose body is the data of the only input; every output is wanted in binary.

    Datatype and shape are the configuration's; one size that it leaves open follows from the length of the body. A model that
    batches is given a batch of one.
    """
    inputs = config.input
    if len(inputs) != 1:
        raise RequestError(f"a raw binary request needs a model with one input, model '{name}' has {len(inputs)}")
    (only,) = inputs
    datatype = only.data_type
    if datatype is DataType.BYTES:
        shape, data = _one_text(only, config, body)
    else:
        shape, data = _batched(_fit(only, len(body)), config), body
    tensor = Tensor(only.name, datatype, array_from_bytes(only.name, datatype, shape, data.toreadonly()))
    return InferRequest(model_name=name, model_version=version, inputs={only.name: tensor}), OutputForms(True)


def _batched(shape: Sequence[int], config: ModelConfig) -> list[int]:
    return [1, *shape] if config.max_batch_size > 0 else list(shape)


def _one_text(only: ModelInput, config: ModelConfig, body: memoryview) -> tuple[list[int], memoryview]:
    if len(only.dims) != 1 or only.dims[0] not in (1, -1):
        raise RequestError(
            f"input '{only.name}' of shape {list(only.dims)}: a raw binary request can only give BYTES of shape [1]"
        )
    return _batched([1], config), memoryview(len(body).to_bytes(4, "little") + body)


def _fit(only: ModelInput, size: int) -> list[int]:
    known = prod(dim for dim in only.dims if dim >= 0) * only.data_type.size
    unknown = sum(dim < 0 for dim in only.dims)
    if unknown > 1:
        raise RequestError(f"{_named(only)}: a raw binary request can leave one size open, not {unknown}")
    if unknown and (not known or size % known):
        raise RequestError(f"{_named(only)}: {size} bytes are no multiple of {known}")
    return [dim if dim >= 0 else size // known for dim in only.dims]


def _named(only: ModelInput) -> str:
    return f"input '{only.name}' of shape {list(only.dims)}"
