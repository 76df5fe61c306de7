"""Encoding an inference response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from attrs import field, frozen

from moorage._server.http.codec.binary import bytes_of_array
from moorage.errors import RequestError
from moorage.types import DataType, InferResponse, Tensor

_BINARY = "binary (the binary tensor data extension)"
_HALVES = (DataType.FP16, DataType.BF16)


@frozen
class OutputForms:
    """Which outputs travel in binary: those marked in `named`, or, if none are named, all or none."""

    default: bool
    named: Mapping[str, bool] = field(factory=dict)

    def binary(self, name: str) -> bool:
        return self.named.get(name, self.default)


@frozen
class EncodedResponse:
    """The parts of a body. `header_length` is the length of the JSON in front, or None if all of it is JSON."""

    parts: list[bytes | memoryview]
    header_length: int | None


def encode_response(
    response: InferResponse, forms: OutputForms, request_id: str = "", *, json_halves: bool = False
) -> EncodedResponse:
    """The body of a response: JSON, and behind it the outputs that are wanted in binary, in order and not copied.

    Floating-point numbers have as many digits as tell them apart; NaN and infinities are null. Raises RequestError for an
    output that has no JSON form.
    """
    parts: list[bytes | memoryview] = [b""]
    head: dict[str, Any] = {"id": request_id} if request_id else {}
    head["model_name"] = response.model_name
    head["model_version"] = str(response.model_version)
    if response.parameters:
        head["parameters"] = response.parameters
    outputs: list[dict[str, Any]] = []
    for tensor in response.outputs:
        entry: dict[str, Any] = {"name": tensor.name, "datatype": tensor.datatype.wire, "shape": tensor.array.shape}
        if forms.binary(tensor.name):
            data = bytes_of_array(tensor.datatype, tensor.array)
            parts.append(data)
            entry["parameters"] = {"binary_data_size": len(data)}
        else:
            entry["data"] = json_data(tensor, json_halves)
        outputs.append(entry)
    head["outputs"] = outputs
    parts[0] = orjson.dumps(head, option=orjson.OPT_SERIALIZE_NUMPY)
    return EncodedResponse(parts, len(parts[0]) if len(parts) > 1 else None)


def json_data(tensor: Tensor, json_halves: bool) -> Any:
    """The elements of an output, flat, as something that the JSON encoder takes."""
    array = tensor.array
    if tensor.datatype is DataType.BYTES:
        return [_text(tensor.name, element) for element in array.ravel().tolist()]
    if tensor.datatype in _HALVES:
        if not json_halves:
            raise RequestError(f"output '{tensor.name}': {tensor.datatype.wire} has no JSON form; ask for it in {_BINARY}")
        array = array.astype(np.float32)
    if not array.size:
        return []
    return np.ascontiguousarray(array).reshape(-1)


def _text(name: str, element: bytes | str) -> str:
    if isinstance(element, str):
        return element
    try:
        return element.decode()
    except UnicodeDecodeError as error:
        raise RequestError(f"output '{name}' is not UTF-8 text; ask for it in {_BINARY}") from error
