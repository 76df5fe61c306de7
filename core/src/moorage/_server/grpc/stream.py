"""ModelStreamInfer: any number of requests on one stream, each with any number of responses."""

from __future__ import annotations

import re
import threading
from typing import Final

from moorage._server.grpc.decode import Parsed, decode, parse, read_version
from moorage._server.grpc.encode import encode_end, encode_failure, encode_refusal, encode_streamed
from moorage._server.grpc.infer import fail
from moorage._server.grpc.lane import Call
from moorage._server.ports import SubmitPort
from moorage.errors import MoorageError
from moorage.types import InferRequest, InferResponse

ERROR_AS_STATUS: Final = ("triton_grpc_error", "true")
"""Metadata by which a client asks that the first error ends the stream with its status."""


class StreamInference:
    """Reads the requests of a stream and starts each at once."""

    def __init__(self, inference: SubmitPort, pattern: re.Pattern[str] | None) -> None:
        self._inference = inference
        self._pattern = pattern

    def __call__(self, call: Call) -> None:
        stream = Stream(call)
        call.read(lambda data: self._arrived(stream, data))

    def _arrived(self, stream: Stream, data: bytes | None) -> None:
        if data is None:
            stream.half_closed()
            return
        parsed: Parsed | None = None
        try:
            parsed = parse(data)
            self._start(stream, parsed)
        except MoorageError as error:
            stream.refused(error, "" if parsed is None else parsed.id)
        stream.call.read(lambda more: self._arrived(stream, more))

    def _start(self, stream: Stream, parsed: Parsed) -> None:
        parsed.version = read_version(parsed.message.model_version, parsed.model)
        request, settings = decode(parsed, stream.call.metadata, self._pattern)
        sink = StreamSink(stream, request, empty_final=settings.empty_final)
        stream.opened(request)
        try:
            self._inference.submit(request, sink)
        except BaseException:
            stream.closed(request)
            raise


class Stream:
    """A call with its requests in flight; it ends when the client sends no more and all have been answered."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._lock = threading.Lock()
        self._running: dict[int, InferRequest] = {}
        self._half_closed = False
        self._error_as_status = ERROR_AS_STATUS in call.metadata
        call.on_end(self._over)

    def opened(self, request: InferRequest) -> None:
        with self._lock:
            self._running[id(request)] = request

    def closed(self, request: InferRequest) -> None:
        """A request has had its last response."""
        with self._lock:
            self._running.pop(id(request), None)
            over = self._half_closed and not self._running
        if over:
            self.call.finish()

    def half_closed(self) -> None:
        """The client sends no more requests."""
        with self._lock:
            self._half_closed = True
            over = not self._running
        if over:
            self.call.finish()

    def refused(self, error: MoorageError, request_id: str) -> None:
        self.failed(error, encode_refusal(str(error), request_id))

    def failed(self, error: MoorageError, message: bytes) -> None:
        """Tell the client of an error: in a message, or by the end of the stream if it asked for that."""
        if self._error_as_status:
            fail(self.call, error)
        else:
            self.call.write(message)

    def _over(self) -> None:
        with self._lock:
            left = list(self._running.values())
        for request in left:
            request.cancelled = True


class StreamSink:
    """Writes the responses to one request into its stream."""

    __slots__ = ("_empty_final", "_request", "_stream")

    def __init__(self, stream: Stream, request: InferRequest, *, empty_final: bool) -> None:
        self._stream = stream
        self._request = request
        self._empty_final = empty_final

    def send(self, response: InferResponse, *, final: bool) -> None:
        if response.error is not None:
            self._failed(response.error, final=final)
        else:
            self._stream.call.write(encode_streamed(response, self._request.id, final=final))
        if final:
            self._stream.closed(self._request)

    def fail(self, error: MoorageError) -> None:
        self._failed(error, final=True)
        self._stream.closed(self._request)

    def complete(self) -> None:
        if self._empty_final:
            self._stream.call.write(encode_end(*self._named()))
        self._stream.closed(self._request)

    def _failed(self, error: MoorageError, *, final: bool) -> None:
        self._stream.failed(error, encode_failure(str(error), *self._named(), final=final))

    def _named(self) -> tuple[str, int, str]:
        """Model, version as the client wrote it, and id."""
        request = self._request
        return request.model_name, request.model_version, request.id
