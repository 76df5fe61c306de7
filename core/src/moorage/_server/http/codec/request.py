"""Decoding an inference request."""

from __future__ import annotations

from typing import Any

import msgspec

from moorage._server.http.codec.binary import array_from_bytes
from moorage._server.http.codec.elements import array_from_json
from moorage._server.http.codec.parameters import apply_parameters, whole_number
from moorage._server.http.codec.response import OutputForms
from moorage.errors import RequestError, Unsupported
from moorage.types import DataType, InferRequest, RequestedOutput, Tensor

_NO_DATA: Any = msgspec.UNSET
_HALVES = (DataType.FP16, DataType.BF16)


class _Input(msgspec.Struct, gc=False):
    name: str
    datatype: str
    shape: list[int]
    data: Any = _NO_DATA
    parameters: dict[str, Any] | None = None


class _Output(msgspec.Struct, gc=False):
    name: str
    parameters: dict[str, Any] | None = None


class _Request(msgspec.Struct, gc=False):
    inputs: list[_Input]
    id: str = ""
    outputs: list[_Output] | None = None
    parameters: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Request).decode


def decode_request(
    body: memoryview, header_length: int, name: str, version: int, *, json_halves: bool = False
) -> tuple[InferRequest, OutputForms]:
    """The request in a body whose first `header_length` bytes are JSON and whose rest is binary tensors.

    The tensors are views of the body. Raises RequestError for whatever is wrong with it.
    """
    parsed = parse_json(_decode, body[:header_length])
    request = InferRequest(model_name=name, model_version=version, inputs={}, id=parsed.id)
    rest = body[header_length:].toreadonly()
    at = 0
    for part in parsed.inputs:
        if part.name in request.inputs:
            raise RequestError(f"input '{part.name}' is given twice")
        request.inputs[part.name], at = _tensor(part, rest, at, json_halves)
    if at != len(rest):
        raise RequestError(f"{len(rest) - at} bytes at the end of the body belong to no input")
    default = bool(parsed.parameters) and apply_parameters(request, parsed.parameters or {})
    return request, _outputs(request, parsed.outputs, default)


def parse_json(decode: Any, text: bytes | memoryview) -> Any:
    """The value of a JSON text. Raises RequestError that says where it is wrong."""
    try:
        return decode(text)
    except msgspec.ValidationError as error:
        raise RequestError(f"the request is not as expected: {error}") from error
    except msgspec.DecodeError as error:
        raise RequestError(f"the request is not valid JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"the request is not valid UTF-8: {error.reason}") from error
    except RecursionError as error:
        raise RequestError("the JSON is nested too deeply") from error


def _tensor(part: _Input, rest: memoryview, at: int, json_halves: bool) -> tuple[Tensor, int]:
    name = part.name
    datatype = DataType.from_wire(part.datatype)
    if datatype is None:
        raise RequestError(f"input '{name}': no datatype '{part.datatype[:40]}'; there are {_datatypes()}")
    size = _binary_size(part) if part.parameters else None
    if size is None:
        return Tensor(name, datatype, _from_json(part, datatype, json_halves)), at
    if part.data is not _NO_DATA:
        raise RequestError(f"input '{name}' has both `data` and `binary_data_size`")
    if size > len(rest) - at:
        raise RequestError(f"input '{name}': `binary_data_size` is {size}, but {len(rest) - at} bytes are left in the body")
    return Tensor(name, datatype, array_from_bytes(name, datatype, part.shape, rest[at : at + size])), at + size


def _from_json(part: _Input, datatype: DataType, json_halves: bool) -> Any:
    if part.data is _NO_DATA:
        raise RequestError(f"input '{part.name}' has neither `data` nor `binary_data_size`")
    if datatype in _HALVES and not json_halves:
        raise RequestError(f"input '{part.name}': {datatype.wire} has no JSON form; use the binary tensor data extension")
    return array_from_json(part.name, datatype, part.shape, part.data)


def _binary_size(part: _Input) -> int | None:
    parameters = part.parameters or {}
    _refuse_shared_memory(f"input '{part.name}'", parameters)
    value = parameters.get("binary_data_size")
    return None if value is None else whole_number("binary_data_size", value)


def _outputs(request: InferRequest, parts: list[_Output] | None, default: bool) -> OutputForms:
    if not parts:
        return OutputForms(default)
    forms: dict[str, bool] = {}
    wanted: list[RequestedOutput] = []
    for part in parts:
        classes = 0
        forms[part.name] = False
        if part.parameters:
            _refuse_shared_memory(f"output '{part.name}'", part.parameters)
            forms[part.name] = _binary_wanted(part.name, part.parameters)
            classes = whole_number("classification", part.parameters.get("classification", 0))
        wanted.append(RequestedOutput(part.name, classes))
    request.outputs = tuple(wanted)
    return OutputForms(False, forms)


def _binary_wanted(name: str, parameters: dict[str, Any]) -> bool:
    wanted = parameters.get("binary_data", False)
    if not isinstance(wanted, bool):
        raise RequestError(f"output '{name}': parameter `binary_data` must be true or false, got {wanted!r:.60}")
    return wanted


def _refuse_shared_memory(where: str, parameters: dict[str, Any]) -> None:
    if "shared_memory_region" in parameters:
        raise Unsupported(f"{where}: shared memory regions are not supported; send the data in the request")


def _datatypes() -> str:
    return ", ".join(datatype.wire for datatype in DataType if datatype is not DataType.INVALID)
