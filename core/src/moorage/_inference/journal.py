"""A line in the log for every request, where verbose messages are wanted."""

from __future__ import annotations

import logging
import time

from moorage._logging import get_logger
from moorage.errors import MoorageError
from moorage.types import InferRequest, InferResponse, Sink

NAME = "moorage.inference"
_log = get_logger(NAME)
_is_enabled = logging.getLogger(NAME).isEnabledFor


def journaled(sink: Sink, request: InferRequest, version: int) -> Sink:
    """A sink that writes a line when the request has been answered; the same sink if nobody wants to read that."""
    return _Journaled(sink, request, version) if _is_enabled(logging.DEBUG) else sink


def refused(request: InferRequest, error: MoorageError) -> None:
    """Write a line for a request that was not taken."""
    if _is_enabled(logging.DEBUG):
        _log.debug("infer", model=request.model_name, version=request.model_version, request_id=request.id, error=str(error))


class _Journaled:
    __slots__ = ("_began", "_error", "_request", "_responses", "_sink", "_version")

    def __init__(self, sink: Sink, request: InferRequest, version: int) -> None:
        self._sink = sink
        self._request = request
        self._version = version
        self._began = time.monotonic_ns()
        self._responses = 0
        self._error: MoorageError | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._responses += 1
        self._error = self._error or response.error
        if final:
            self._write()
        self._sink.send(response, final=final)

    def fail(self, error: MoorageError) -> None:
        self._error = error
        self._write()
        self._sink.fail(error)

    def complete(self) -> None:
        self._write()
        self._sink.complete()

    def _write(self) -> None:
        outcome = {} if self._error is None else {"error": str(self._error)}
        _log.debug(
            "infer",
            model=self._request.model_name,
            version=self._version,
            request_id=self._request.id,
            responses=self._responses,
            microseconds=(time.monotonic_ns() - self._began) // 1000,
            **outcome,
        )
