"""The generate extension: a flat JSON object for the inputs and parameters of a request, another for a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from moorage._server.http.codec.elements import array_from_json
from moorage._server.http.codec.parameters import model_parameter
from moorage._server.http.codec.request import parse_json
from moorage._server.http.codec.response import json_data
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import RequestError
from moorage.types import DataType, InferRequest, InferResponse, Tensor

_NESTED = "parameters"
_HALVES = (DataType.FP16, DataType.BF16)
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def decode_generate(
    body: memoryview, name: str, version: int, config: ModelConfig, *, json_halves: bool = False
) -> InferRequest:
    """The request in a body: keys that name an input of the model are tensors, all others parameters, at the top and below
    `parameters`.

    Raises RequestError for whatever is wrong with it.
    """
    fields: dict[str, Any] = parse_json(_decode, body) if body else {}
    request = InferRequest(model_name=name, model_version=version, inputs={})
    filling = _Filling(request, config, json_halves)
    request.id = filling.identifier(fields)
    nested = fields.pop(_NESTED, {})
    if not isinstance(nested, dict):
        raise RequestError(f"`{_NESTED}` must be an object, got {nested!r:.60}")
    for key, value in (*fields.items(), *nested.items()):
        filling.put(key, value)
    return request


class _Filling:
    """Puts the fields of one object into a request."""

    def __init__(self, request: InferRequest, config: ModelConfig, json_halves: bool) -> None:
        self._request = request
        self._inputs = {item.name: item for item in config.input}
        self._batches = config.batches
        self._json_halves = json_halves

    def identifier(self, fields: dict[str, Any]) -> str:
        """The request's own `id`, which it gets back; a model may have an input of that name, too."""
        value = fields.get("id", "")
        if isinstance(value, str):
            return value
        if "id" in self._inputs:
            return ""
        raise RequestError(f"`id` must be a string, got {value!r:.60}")

    def put(self, key: str, value: Any) -> None:
        item = self._inputs.get(key)
        if item is None:
            self._request.parameters[key] = model_parameter(key, value)
        elif key in self._request.inputs:
            raise RequestError(f"input '{key}' is given twice")
        else:
            self._request.inputs[key] = self._tensor(item, value)

    def _tensor(self, item: ModelInput, value: Any) -> Tensor:
        if item.data_type in _HALVES and not self._json_halves:
            raise RequestError(f"input '{item.name}': {item.data_type.wire} has no JSON form; use the infer endpoint")
        data = value if isinstance(value, list) else [value]
        dims = (-1, *item.dims) if self._batches and not item.is_shape_tensor else item.dims
        shape = _fitted(item.name, dims, len(data))
        return Tensor(item.name, item.data_type, array_from_json(item.name, item.data_type, shape, data))


def _fitted(name: str, dims: Sequence[int], count: int) -> list[int]:
    """The shape for so many elements: the innermost open size takes what the fixed sizes leave, other open sizes are 1."""
    rest = count
    for size in dims:
        if size >= 0:
            rest = -1 if size == 0 or rest % size else rest // size
    shape: list[int] = []
    for size in reversed(dims):
        if size < 0:
            shape.append(rest)
            rest = 1
        else:
            shape.append(size)
    if rest != 1 or min(shape, default=0) < 0:
        raise RequestError(f"input '{name}': {count} elements do not fit the shape {list(dims)}")
    return shape[::-1]


def encode_generate(response: InferResponse, request_id: str, *, json_halves: bool = False) -> bytes:
    """The JSON object of a response: each output under its name, one that holds a single element as that element.

    Raises RequestError for an output that has no JSON form.
    """
    found: dict[str, Any] = {tensor.name: _value(tensor, json_halves) for tensor in response.outputs}
    found |= response.parameters
    if request_id:
        found["id"] = request_id
    found |= {"model_name": response.model_name, "model_version": str(response.model_version)}
    return orjson.dumps(found, option=orjson.OPT_SERIALIZE_NUMPY)


def _value(tensor: Tensor, json_halves: bool) -> Any:
    data = json_data(tensor, json_halves)
    return data[0] if len(data) == 1 else data
