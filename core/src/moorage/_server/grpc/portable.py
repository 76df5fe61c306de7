"""Calls carried by grpcio's public API alone: each call in flight holds a thread, and another while it waits for a message."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Iterator

import grpc

from moorage._server.grpc.lane import Handler, Metadata, Received

_LOGGER = logging.getLogger(__name__)

MAX_CALLS = 1000
"""How many calls can be in flight."""


class PortableCall:
    """A call whose messages and status go through a queue to the thread that grpcio lent it."""

    def __init__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> None:
        self._requests = requests
        self._context = context
        self._outgoing: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reads: queue.SimpleQueue[Received | None] = queue.SimpleQueue()
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._ended = False
        self.on_end(self._release)

    @property
    def metadata(self) -> Metadata:
        return [(str(key), value) for key, value in self._context.invocation_metadata()]

    def read(self, received: Received) -> None:
        self._reads.put(received)
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_all, name="moorage-grpc-read", daemon=True)
            self._reader.start()

    def write(self, message: bytes) -> None:
        with self._lock:
            if not self._ended:
                self._outgoing.put(message)

    def finish(self, code: grpc.StatusCode = grpc.StatusCode.OK, details: str = "") -> None:
        with self._lock:
            if self._ended:
                return
            self._ended = True
            self._context.set_code(code)
            self._context.set_details(details)
            self._outgoing.put(None)

    def reply(self, message: bytes) -> None:
        self.write(message)
        self.finish()

    def on_end(self, callback: Callable[[], None]) -> None:
        if not self._context.add_callback(callback):
            callback()

    def messages(self) -> Iterator[bytes]:
        """What is to be sent, until the call ends. Blocks."""
        while (message := self._outgoing.get()) is not None:
            yield message

    def _read_all(self) -> None:
        while (received := self._reads.get()) is not None:
            try:
                received(self._next())
            except Exception:
                _LOGGER.exception("a gRPC call failed")
                self.finish(grpc.StatusCode.INTERNAL, "internal error, see the server's log")

    def _next(self) -> bytes | None:
        try:
            return next(self._requests, None)
        except grpc.RpcError:
            return None

    def _release(self) -> None:
        """Let both threads go when the call is over."""
        self._outgoing.put(None)
        self._reads.put(None)


def method(handler: Handler) -> grpc.RpcMethodHandler[bytes, bytes]:
    """A method, unary or streaming, for a server of `grpc.server`."""

    def behaviour(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        call = PortableCall(requests, context)
        handler(call)
        return call.messages()

    return grpc.stream_stream_rpc_method_handler(behaviour)
