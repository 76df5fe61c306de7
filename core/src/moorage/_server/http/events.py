"""Server-sent events, and the responses that become events."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from moorage.errors import MoorageError
from moorage.types import InferResponse

EVENT_STREAM: Final = (b"content-type", b"text/event-stream; charset=utf-8")


def event(data: bytes) -> bytes:
    """An event that carries one line of data."""
    return b"data: %b\n\n" % data


class Responses:
    """The sink of a request whose responses are taken one by one on an event loop, as they come."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[InferResponse | MoorageError | None, bool]] = deque()
        self._arrived = asyncio.Event()
        self._woken = False

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._put(response, final)

    def fail(self, error: MoorageError) -> None:
        self._put(error, True)

    def complete(self) -> None:
        self._put(None, True)

    def _put(self, item: InferResponse | MoorageError | None, final: bool) -> None:
        self._waiting.append((item, final))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._woken = False
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[InferResponse | MoorageError]:
        """The responses in order, until the request has ended; errors come as values."""
        final = False
        while not final:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                item, final = self._waiting.popleft()
                if isinstance(item, InferResponse) and item.error is not None:
                    item = item.error
                if item is not None:
                    yield item
