"""ModelInfer: one request, one response."""

from __future__ import annotations

import re

import grpc

from moorage._server.grpc.decode import decode, parse, read_version
from moorage._server.grpc.encode import encode
from moorage._server.grpc.lane import Call
from moorage._server.grpc.status import details_of, status_of
from moorage._server.ports import SubmitPort
from moorage.errors import Internal, MoorageError
from moorage.types import InferRequest, InferResponse


class UnaryInference:
    """Starts a call's request when it has arrived."""

    def __init__(self, inference: SubmitPort, pattern: re.Pattern[str] | None) -> None:
        self._inference = inference
        self._pattern = pattern

    def __call__(self, call: Call) -> None:
        call.read(lambda data: self._arrived(call, data))

    def _arrived(self, call: Call, data: bytes | None) -> None:
        if data is None:
            call.finish(grpc.StatusCode.INVALID_ARGUMENT, "ModelInfer takes one request, none was sent")
            return
        try:
            self._start(call, data)
        except MoorageError as error:
            fail(call, error)

    def _start(self, call: Call, data: bytes) -> None:
        parsed = parse(data)
        parsed.version = read_version(parsed.message.model_version, parsed.model)
        request, _ = decode(parsed, call.metadata, self._pattern)
        self._inference.submit(request, UnarySink(call, request), unary=True)


class UnarySink:
    """Answers a call with the first response."""

    __slots__ = ("_call", "_ended", "_request")

    def __init__(self, call: Call, request: InferRequest) -> None:
        self._call = call
        self._request = request
        self._ended = False
        call.on_end(self._over)

    def send(self, response: InferResponse, *, final: bool) -> None:
        if self._ended:
            return
        if response.error is not None:
            self.fail(response.error)
        else:
            message = encode(response, self._request.id)
            self._ended = True
            self._call.reply(message)

    def fail(self, error: MoorageError) -> None:
        if not self._ended:
            self._ended = True
            fail(self._call, error)

    def complete(self) -> None:
        if not self._ended:
            self.fail(Internal(f"model '{self._request.model_name}' ended the request without a response"))

    def _over(self) -> None:
        if not self._ended:
            self._request.cancelled = True


def fail(call: Call, error: MoorageError) -> None:
    """End a call with an error."""
    call.finish(status_of(error), details_of(str(error)))
