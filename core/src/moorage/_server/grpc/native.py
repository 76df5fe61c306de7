"""Calls carried without holding a thread.

grpcio's synchronous server spends most of a short call on handing it from thread to thread, and holds a thread while a model
runs. Here the thread that polls the completion queue starts the reads itself, and whoever has an answer starts the write, in
one batch with the status. This uses parts of grpcio that are not promised (`available` says whether they are as expected; where
they are not, calls are carried by `portable`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent import futures
from typing import Any, Final

import grpc

from moorage._server.grpc.lane import Handler, Metadata, Received

try:
    from grpc import _common, _server
    from grpc._cython import cygrpc  # type: ignore[attr-defined]

    available: Final = all(
        hasattr(module, name)
        for module, names in (
            (_common, ("STATUS_CODE_TO_CYGRPC_STATUS_CODE",)),
            (_server, ("_CANCELLED", "_CLOSED", "_OPEN", "_is_rpc_state_active", "_Context", "_stream_response_in_pool")),
            (cygrpc, ("ReceiveMessageOperation", "SendInitialMetadataOperation", "SendMessageOperation")),
            (cygrpc, ("SendStatusFromServerOperation",)),
        )
        for name in names
    )
except ImportError:  # pragma: no cover
    available: Final = False  # type: ignore[misc]

_LOGGER = logging.getLogger(__name__)

_READ: Final = "moorage read"
_SEND: Final = "moorage send"
_NO_FLAGS: Final = 0

Finished = tuple[Any, Any]
"""What grpcio's polling thread wants of a completion: the state of a call that is over with its callbacks, else (None, ())."""


class NativeCall:
    """A call on grpcio's own operations. Its lock is the one by which grpcio guards the state of the call."""

    __slots__ = ("_call", "_context", "_ending", "_outgoing", "_sending", "_state")

    def __init__(self, context: Any) -> None:
        self._context = context
        self._call = context._rpc_event.call
        self._state = context._state
        self._outgoing: deque[bytes] = deque()
        self._ending: tuple[Any, bytes] | None = None
        self._sending = False

    @property
    def metadata(self) -> Metadata:
        found: Metadata | None = self._context.invocation_metadata()
        return found or ()

    def read(self, received: Received) -> None:
        def arrived(event: Any) -> Finished:
            message: bytes | None = event.batch_operations[0].message()
            with self._state.condition:
                self._state.due.remove(_READ)
                if message is None and self._state.client is _server._OPEN:
                    self._state.client = _server._CLOSED
            self._guarded(received, message)
            return self._settled()

        with self._state.condition:
            if self._active():
                self._state.due.add(_READ)
                self._call.start_server_batch((cygrpc.ReceiveMessageOperation(_NO_FLAGS),), arrived)

    def write(self, message: bytes) -> None:
        with self._state.condition:
            self._outgoing.append(message)
            self._push()

    def finish(self, code: grpc.StatusCode = grpc.StatusCode.OK, details: str = "") -> None:
        with self._state.condition:
            if self._ending is None:
                self._ending = (_common.STATUS_CODE_TO_CYGRPC_STATUS_CODE[code], details.encode(errors="replace"))
                self._push()

    def reply(self, message: bytes) -> None:
        with self._state.condition:
            if self._ending is None:
                self._outgoing.append(message)
                self._ending = (cygrpc.StatusCode.ok, b"")
                self._push()

    def on_end(self, callback: Callable[[], None]) -> None:
        if not self._context.add_callback(callback):
            callback()

    def _guarded(self, received: Received, message: bytes | None) -> None:
        try:
            received(message)
        except Exception:
            _LOGGER.exception("a gRPC call failed")
            self.finish(grpc.StatusCode.INTERNAL, "internal error, see the server's log")

    def _active(self) -> bool:
        active: bool = _server._is_rpc_state_active(self._state)
        return active

    def _push(self) -> None:
        """Start the next batch if none is under way: a message, the status, or both. The lock is held."""
        if self._sending:
            return
        if not self._active():
            self._outgoing.clear()
            return
        operations = self._next_operations()
        if operations:
            self._sending = True
            self._state.due.add(_SEND)
            self._call.start_server_batch(operations, self._sent)

    def _next_operations(self) -> list[Any]:
        state = self._state
        operations: list[Any] = []
        ending = self._ending if len(self._outgoing) <= 1 else None
        if state.initial_metadata_allowed and (self._outgoing or ending):
            operations.append(cygrpc.SendInitialMetadataOperation(None, _NO_FLAGS))
            state.initial_metadata_allowed = False
        if self._outgoing:
            operations.append(cygrpc.SendMessageOperation(self._outgoing.popleft(), _NO_FLAGS))
        if ending:
            operations.append(cygrpc.SendStatusFromServerOperation(None, *ending, _NO_FLAGS))
            state.statused = True
        return operations

    def _sent(self, _event: Any) -> Finished:
        with self._state.condition:
            self._state.due.remove(_SEND)
            self._sending = False
            self._push()
        return self._settled()

    def _settled(self) -> Finished:
        """Tell grpcio whether the call is over: its last operation has completed after its end."""
        state = self._state
        with state.condition:
            if state.due or self._active() or state.callbacks is None:
                return None, ()
            callbacks, state.callbacks = state.callbacks, None
            return state, callbacks


class _Inline(futures.ThreadPoolExecutor):
    """Runs what it is given on the calling thread."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()
        done.set_result(fn(*args, **kwargs))
        return done


_INLINE: Final = _Inline(max_workers=1)


def method(handler: Handler) -> grpc.RpcMethodHandler[bytes, bytes]:
    """A method, unary or streaming (they look alike on the wire), for a server of `grpc.server`."""

    def start(_requests: object, context: object, _send: object) -> None:
        handler(NativeCall(context))

    start.experimental_non_blocking = True  # type: ignore[attr-defined]
    start.experimental_thread_pool = _INLINE  # type: ignore[attr-defined]
    return grpc.stream_stream_rpc_method_handler(start)
