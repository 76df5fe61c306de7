"""uvicorn's HTTP protocol with fewer system calls and fewer copies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from moorage._server.http.asgi import READ_INTO
from moorage._server.http.lane import Exchange, Heads, Lane
from moorage._server.http.replies import Reply

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

    def write_at_once(self, head: bytes, parts: Sequence[bytes | memoryview]) -> None:
        """Write a whole response after what is held; small ones in one piece."""
        self.flush()
        if sum(map(len, parts)) < _JOIN_BELOW:
            self._transport.write(b"".join([head, *parts]))
        else:
            for part in (head, *parts):
                self._transport.write(part)

    def close(self) -> None:
        """Close when all is written."""
        self.flush()
        self._transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class HttpProtocol(HttpToolsProtocol):
    """One connection: requests that the lane takes, and all others for the application.

    The application can read the rest of a body straight into memory of its own. It finds `read_into` among the extensions of
    its scope, under READ_INTO, and may call it once for a request, when it has received a part of the body and been told that
    there is more.
    """

    cycle: Any
    """The newest request: uvicorn's cycle of one for the application, or an exchange of the lane."""

    _target: memoryview | None = None
    _filled = 0
    _done: asyncio.Future[bool] | None = None
    _exchange: Exchange | None = None
    """The request in the lane, from its head until it is answered."""
    _collecting: Exchange | None = None
    """The same, until its body is complete."""
    _idle_since: float | None = None
    """When the lane answered, if nothing has come since."""
    _idle_timer: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, lane: Lane | None = None, heads: Heads, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lane = lane
        self._heads = heads

    def connection_made(self, transport: Any) -> None:
        self._corked = CorkedTransport(transport, self.loop)
        super().connection_made(self._corked)  # type: ignore[arg-type]

    def on_message_begin(self) -> None:
        self._idle_since = None
        self.url = b""
        self.headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        if self._lane is not None and self._is_free() and self._is_plain():
            exchange = self._lane.opens(self.parser.get_method(), self.url, self.headers)
            if exchange is not None:
                exchange.write = self._write
                self._exchange = self._collecting = exchange
                self.cycle = exchange
                return
        self._begin_cycle()
        super().on_headers_complete()

    def _is_free(self) -> bool:
        """Whether all requests before this one have been answered and the client takes the answers."""
        return (self.cycle is None or self.cycle.response_complete) and not self.flow.write_paused

    def _is_plain(self) -> bool:
        parser = self.parser
        return parser.should_keep_alive() and not parser.should_upgrade() and parser.get_http_version() == "1.1"

    def _begin_cycle(self) -> None:
        """What uvicorn does when a message begins; here it is known only now that it is needed."""
        url, headers = self.url, self.headers
        super().on_message_begin()
        self.url = url
        self.headers.extend(headers)
        self.expect_100_continue = any(name == b"expect" and value.lower() == b"100-continue" for name, value in headers)
        extensions: Any = {READ_INTO: self.read_into}
        self.scope["extensions"] = extensions

    def _write(self, exchange: Exchange, reply: Reply) -> None:
        """Write a response of the lane and be ready for the next request."""
        self._exchange = None
        transport = self._corked
        if not transport.is_closing():
            head = self._heads.head(self.server_state.default_headers, reply, keep_alive=exchange.keep_alive)
            transport.write_at_once(head, reply.body)
            if not exchange.keep_alive:
                transport.close()
        if self.pipeline or transport.is_closing():
            self.on_response_complete()
            return
        self.server_state.total_requests += 1
        self._idle_since = self.loop.time()
        if self._idle_timer is None:
            self._idle_timer = self.loop.call_later(self.timeout_keep_alive, self._look_whether_idle)

    def _look_whether_idle(self) -> None:
        """Close the connection if it has been idle for too long. One timer serves many requests."""
        self._idle_timer = None
        if self._idle_since is None:
            return  # whoever answers the request that has begun starts a timer
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._idle_timer = self.loop.call_later(left, self._look_whether_idle)
        else:
            self.timeout_keep_alive_handler()

    def drop(self) -> None:
        """End what still runs in the lane: the server stops."""
        if self._exchange is not None:
            self._exchange.abandon()
            self.transport.abort()

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
        if self._collecting is not None:
            self._collecting.body += body
        elif self._target is None:
            super().on_body(body)
        else:
            at = self._filled
            self._filled = at + len(body)
            self._target[at : self._filled] = body

    def on_message_complete(self) -> None:
        if self._collecting is not None and self._lane is not None:
            exchange, self._collecting = self._collecting, None
            self._lane.run(exchange)
            return
        super().on_message_complete()
        self._finish(True)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._finish(False)
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        if self._exchange is not None:
            self._exchange.abandon()
            self._exchange = self._collecting = None

    def _finish(self, complete: bool) -> None:
        self._target = None  # what comes now belongs to the next request
        if self._done is not None and not self._done.done():
            self._done.set_result(complete)
