"""uvicorn's HTTP protocol with fewer system calls and fewer copies."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

READ_INTO: Final = "moorage.read_into"
_JOIN_BELOW = 64 * 1024


class CorkedTransport:
    """A transport that joins the small writes of one turn of the event loop into one system call.

    A response is written in two pieces at least, its head and its body.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes | memoryview] = []
        self._size = 0
        self.is_closing = transport.is_closing
        self.pause_reading = transport.pause_reading
        self.resume_reading = transport.resume_reading
        self.get_extra_info = transport.get_extra_info

    def write(self, data: bytes | memoryview) -> None:
        """Write now or at the end of this turn, in order."""
        size = len(data)
        if size >= _JOIN_BELOW:
            self.flush()
            self._transport.write(data)
            return
        if not self._held:
            self._loop.call_soon(self.flush)
        self._held.append(data)
        self._size += size
        if self._size >= _JOIN_BELOW:
            self.flush()

    def flush(self) -> None:
        """Hand over what is held."""
        if held := self._held:
            self._held = []
            self._size = 0
            self._transport.write(held[0] if len(held) == 1 else b"".join(held))

    def close(self) -> None:
        """Close when all is written."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One connection. It can read the rest of a body straight into memory that the application gives.

    An application finds `read_into` among the extensions of its scope, under READ_INTO. It may call it once for a request,
    when it has received a part of the body and been told that there is more.
    """

    _target: memoryview | None = None
    _filled = 0
    _done: asyncio.Future[bool] | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(CorkedTransport(transport, self.loop))  # type: ignore[arg-type]

    def on_message_begin(self) -> None:
        super().on_message_begin()
        extensions: Any = {READ_INTO: self.read_into}
        self.scope["extensions"] = extensions

    async def read_into(self, target: memoryview) -> int:
        """Read what is left of the body, at most as much as fits; the result is how much came, -1 if the client went away."""
        self._target = target
        self._filled = 0
        self._done = self.loop.create_future()
        self.flow.resume_reading()
        try:
            return self._filled if await self._done else -1
        finally:
            self._target = self._done = None

    def on_body(self, body: bytes) -> None:
        if self._target is None:
            super().on_body(body)
            return
        at = self._filled
        self._filled = at + len(body)
        self._target[at : self._filled] = body

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._finish(True)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._finish(False)

    def _finish(self, complete: bool) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_result(complete)
