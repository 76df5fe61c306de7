"""A call as the handlers see it, whatever carries it, and how handlers are given to a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import grpc

Metadata = Sequence[tuple[str, str | bytes]]
Received = Callable[[bytes | None], None]


class Call(Protocol):
    """One call of a client: any number of messages in both directions, then a status.

    No method blocks, and any thread may call them. What is written after the client has gone is dropped.
    """

    @property
    def metadata(self) -> Metadata:
        """What the client sent along, keys in lower case."""

    def read(self, received: Received) -> None:
        """Have the next message given to `received`, None when the client sends no more. One read at a time.

        `received` is called once, on a thread of the server which it must not hold up.
        """

    def write(self, message: bytes) -> None:
        """Send a message after those before it."""

    def finish(self, code: grpc.StatusCode = grpc.StatusCode.OK, details: str = "") -> None:
        """End the call when what was written is on its way."""

    def reply(self, message: bytes) -> None:
        """Send the only message and end the call well."""

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called when the call is over, however it ended."""


Handler = Callable[[Call], None]
"""Starts to handle a call and returns at once."""


class MethodTable(grpc.GenericRpcHandler):  # type: ignore[type-arg]
    """Finds the handler of a method by its full name (`/package.Service/Method`)."""

    def __init__(self, methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]]) -> None:
        self._methods = methods

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[bytes, bytes] | None:
        return self._methods.get(handler_call_details.method)
