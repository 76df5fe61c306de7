"""InferResponse to ModelInferResponse and ModelStreamInferResponse, as bytes for the wire.

What is the same in every answer of a model (names, types, shapes) is built once and kept; tensors are copied once, into the
message.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np

from moorage._server.grpc.parameters import FINAL, write_parameter
from moorage._server.grpc.wire import varint
from moorage.config.proto import message_class
from moorage.types import LATEST, DataType, InferResponse, ParameterValue, Tensor
from moorage.types.tensor import encode_bytes

_RESPONSE: Final[Any] = message_class("ModelInferResponse")
_STREAM: Final[Any] = message_class("ModelStreamInferResponse")

Layout = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, data type and shape of each output."""

Part = bytes | np.ndarray

_LARGE: Final = 64 * 1024


def _tag(message: Any, field: str) -> bytes:
    """What comes before a field of bytes, text or messages."""
    return varint(message.DESCRIPTOR.fields_by_name[field].number << 3 | 2)


_ID: Final = _tag(_RESPONSE, "id")
_RAW: Final = _tag(_RESPONSE, "raw_output_contents")
_RESPONSE_IN_STREAM: Final = _tag(_STREAM, "infer_response")


def encode(response: InferResponse, request_id: str) -> bytes:
    """A ModelInferResponse."""
    return b"".join(_parts(response, request_id))  # type: ignore[arg-type]


def encode_streamed(response: InferResponse, request_id: str, *, final: bool) -> bytes:
    """A ModelStreamInferResponse; `final` says whether the request will have no more responses."""
    parts = _parts(response, request_id)
    parts.append(_final_flag(final))
    size = sum(len(part) if isinstance(part, bytes) else part.nbytes for part in parts)
    return b"".join((_RESPONSE_IN_STREAM, varint(size), *parts))  # type: ignore[arg-type]


def encode_end(model: str, version: int, request_id: str) -> bytes:
    """The message that says that a request has no more responses."""
    return encode_streamed(InferResponse([], model_name=model, model_version=version), request_id, final=True)


def encode_refusal(error: str, request_id: str) -> bytes:
    """A ModelStreamInferResponse for a request that was not run."""
    message: bytes = _STREAM(error_message=error, infer_response=_RESPONSE(id=request_id)).SerializeToString()
    return message


def encode_failure(error: str, model: str, version: int, request_id: str, *, final: bool) -> bytes:
    """A ModelStreamInferResponse for an error of the model."""
    head: bytes = _STREAM(error_message=error).SerializeToString()
    return head + encode_streamed(InferResponse([], model_name=model, model_version=version), request_id, final=final)


def _parts(response: InferResponse, request_id: str) -> list[Part]:
    outputs = response.outputs
    layout = tuple([(tensor.name, tensor.datatype.wire, tensor.array.shape) for tensor in outputs])
    parts: list[Part] = [_head(response.model_name, response.model_version, layout)]
    if request_id:
        raw_id = request_id.encode()
        parts += (_ID, varint(len(raw_id)), raw_id)
    if response.parameters:
        parts.append(_parameters(response.parameters))
    for tensor in outputs:
        content = _content(tensor)
        parts += (_RAW, varint(len(content)), content)
    return parts


@lru_cache(maxsize=1024)
def _head(model: str, version: int, layout: Layout) -> bytes:
    message = _RESPONSE(model_name=model, model_version="" if version == LATEST else str(version))
    for name, datatype, shape in layout:
        message.outputs.add(name=name, datatype=datatype, shape=shape)
    head: bytes = message.SerializeToString()
    return head


def _parameters(parameters: Mapping[str, ParameterValue]) -> bytes:
    message = _RESPONSE()
    for name, value in parameters.items():
        write_parameter(message.parameters[name], value)
    encoded: bytes = message.SerializeToString()
    return encoded


@lru_cache(maxsize=2)
def _final_flag(final: bool) -> bytes:
    return _parameters({FINAL: final})


def _content(tensor: Tensor) -> Part:
    """The elements as they travel; large ones as a view where that can be."""
    array = tensor.array
    if tensor.datatype is DataType.BYTES:
        return encode_bytes(array.reshape(-1).tolist())
    if array.nbytes < _LARGE or not array.flags.c_contiguous:
        return array.tobytes()
    return array.reshape(-1).view(np.uint8)
