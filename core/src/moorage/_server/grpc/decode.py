"""ModelInferRequest, as it came off the wire, to InferRequest."""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import define
from google.protobuf.message import DecodeError

from moorage._server.grpc.lane import Metadata
from moorage._server.grpc.parameters import Settings, forwarded, read_classification, read_settings, refuse_shared_memory
from moorage._server.grpc.tensors import Raw, read_inputs
from moorage._server.grpc.wire import MalformedError, split
from moorage.config.proto import message_class
from moorage.errors import RequestError
from moorage.types import LATEST, InferRequest, RequestedOutput, parse_version

_LARGE: Final = 64 * 1024
"""From this size on, raw contents are cut out of a message before it is parsed: the parser would copy them twice."""

_REQUEST: Final[Any] = message_class("ModelInferRequest")
_RAW_CONTENTS: Final[int] = _REQUEST.DESCRIPTOR.fields_by_name["raw_input_contents"].number


@define
class Parsed:
    """A ModelInferRequest whose envelope has been read, and its tensors not yet."""

    message: Any
    raws: list[Raw]
    version: int

    @property
    def model(self) -> str:
        name: str = self.message.model_name
        return name

    @property
    def id(self) -> str:
        request_id: str = self.message.id
        return request_id


def parse(data: bytes) -> Parsed:
    """Read the envelope of a request. Raises RequestError."""
    try:
        head, raws = _split(data)
        message = _REQUEST.FromString(head)
    except DecodeError as error:
        raise RequestError(f"the request is no ModelInferRequest: {error}") from error
    return Parsed(message, raws if raws is not None else list(message.raw_input_contents), LATEST)


def _split(data: bytes) -> tuple[bytes, list[Raw] | None]:
    if len(data) < _LARGE:
        return data, None
    try:
        head, raws = split(data, _RAW_CONTENTS)
    except MalformedError:
        return data, None
    return head, list(raws)


def read_version(text: str, model: str) -> int:
    """The version in a request, LATEST if it names none. Raises RequestError."""
    if not text:
        return LATEST
    version = parse_version(text)
    if version is None:
        raise RequestError(f"model '{model}': '{text}' is no version, give a positive whole number")
    return version


def decode(parsed: Parsed, metadata: Metadata, pattern: re.Pattern[str] | None) -> tuple[InferRequest, Settings]:
    """The whole request and what its parameters say. Raises RequestError naming the model."""
    try:
        return _decode(parsed, metadata, pattern)
    except RequestError as error:
        raise RequestError(f"model '{parsed.model}': {error}") from error


def _decode(parsed: Parsed, metadata: Metadata, pattern: re.Pattern[str] | None) -> tuple[InferRequest, Settings]:
    message = parsed.message
    settings = read_settings(message.parameters) if message.parameters else Settings()
    if pattern is not None:
        settings.custom.update(forwarded(metadata, pattern))
    request = InferRequest(
        model_name=parsed.model,
        model_version=parsed.version,
        id=parsed.id,
        inputs=read_inputs(_inputs(message), parsed.raws),
        outputs=tuple(_output(output) for output in message.outputs) if message.outputs else (),
        parameters=settings.custom,
        correlation_id=settings.correlation_id,
        sequence_start=settings.sequence_start,
        sequence_end=settings.sequence_end,
        priority=settings.priority,
        timeout_us=settings.timeout_us,
    )
    return request, settings


def _inputs(message: Any) -> list[Any]:
    inputs = list(message.inputs)
    for tensor in inputs:
        if tensor.parameters:
            refuse_shared_memory(tensor.parameters, f"input '{tensor.name}'")
    return inputs


def _output(message: Any) -> RequestedOutput:
    if not message.parameters:
        return RequestedOutput(message.name)
    refuse_shared_memory(message.parameters, f"output '{message.name}'")
    return RequestedOutput(message.name, read_classification(message.parameters, message.name))
