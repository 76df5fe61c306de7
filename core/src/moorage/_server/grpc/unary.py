"""Unary calls that are answered by a coroutine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from moorage._server.grpc.admin import Answer
from moorage._server.grpc.infer import fail
from moorage._server.grpc.lane import Call, Handler
from moorage.errors import MoorageError, RequestError

_LOGGER = logging.getLogger(__name__)


class Coroutines:
    """Runs the coroutines of calls on one event loop. Created on that loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._running: set[asyncio.Task[None]] = set()

    def handler(self, request: type[Message], answer: Answer) -> Handler:
        """Handles a call that takes one message of type `request`."""

        async def respond(call: Call, data: bytes | None) -> None:
            response = await answer(_parsed(request, data))
            call.reply(response.SerializeToString())

        return lambda call: call.read(lambda data: self.start(call, lambda: respond(call, data)))

    def start(self, call: Call, work: Callable[[], Any]) -> None:
        """Run a coroutine for a call; an error ends the call. Any thread."""
        self._loop.call_soon_threadsafe(self._spawn, call, work)

    def cancel(self) -> None:
        """Cancel what still runs."""
        for task in self._running:
            task.cancel()

    def _spawn(self, call: Call, work: Callable[[], Any]) -> None:
        task = self._loop.create_task(_answered(call, work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)


async def _answered(call: Call, work: Callable[[], Any]) -> None:
    try:
        await work()
    except MoorageError as error:
        fail(call, error)
    except asyncio.CancelledError:
        call.finish(grpc.StatusCode.UNAVAILABLE, "the server is stopping")
        raise
    except Exception:
        _LOGGER.exception("a gRPC call failed")
        call.finish(grpc.StatusCode.INTERNAL, "internal error, see the server's log")


def _parsed(request: type[Message], data: bytes | None) -> Message:
    if data is None:
        raise RequestError(f"the call takes one {request.DESCRIPTOR.name}, none was sent")
    try:
        return request.FromString(data)
    except DecodeError as error:
        raise RequestError(f"the request is no {request.DESCRIPTOR.name}: {error}") from error
