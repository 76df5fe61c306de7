"""What a connection may cost before its request is known: the size of heads, and the time that they take."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from moorage._server.http.protocol import HttpProtocol
from moorage._server.http.replies import JSON, Reply, error_body

LONGEST_HEAD: Final = 128 * 1024
"""Bytes of a request line with its headers; of trailers, and of what else stands between the parts of a body, too."""

_BROKEN: Final = (400, "this is no valid HTTP request")
_TOO_LONG: Final = (431, f"the request line and the headers have more than {LONGEST_HEAD} bytes")
_LATE: Final = (408, "the request line and the headers did not come in time")


class _HeadTooLongError(Exception):
    """Ends the parsing of a request."""


class LimitedProtocol(HttpProtocol):
    """A connection that answers broken, endless and unfinished heads with an error in JSON, and ends."""

    _fed = 0
    """Bytes that have come since the last one that was part of a body or ended a head."""
    _refusal = _BROKEN
    _head_since: float | None = None
    """When the head began that is not complete yet, or the connection on which none has begun."""
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._timer = self.loop.call_later(self.timeout_keep_alive, self._look_whether_late)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._fed += len(data)
        super().data_received(data)
        if self._fed > LONGEST_HEAD and not self.transport.is_closing():
            self._refusal = _TOO_LONG
            self._give_up()

    def on_message_begin(self) -> None:
        self._head_since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head_since = None
        if self._fed > LONGEST_HEAD and self._head_size() > LONGEST_HEAD:
            self._refusal = _TOO_LONG
            raise _HeadTooLongError
        self._fed = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._fed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._fed = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._give_up()

    def _unsupported_upgrade_warning(self) -> None:
        """Other protocols are not spoken here, and nobody needs to install anything for it."""

    def _give_up(self) -> None:
        """Nothing more is read. A request that was complete before is still answered."""
        if self._is_busy():
            self.cycle.keep_alive = False
            self.pipeline.clear()
            self.flow.pause_reading()
        else:
            self._refuse(*self._refusal)

    def _is_busy(self) -> bool:
        """Whether a request is complete and its answer is not."""
        unfinished = self.cycle is not None and not self.cycle.response_complete
        return unfinished and self._collecting is None and not getattr(self.cycle, "more_body", False)

    def _head_size(self) -> int:
        return len(self.url) + sum(len(name) + len(value) for name, value in self.headers)

    def _refuse(self, status: int, message: str) -> None:
        reply = Reply(status, [JSON], [error_body(message)])
        head = self._heads.head(self.server_state.default_headers, reply, keep_alive=False)
        self.transport.write(head + reply.body[0])
        self.transport.close()

    def _look_whether_late(self) -> None:
        """Close a connection whose head does not come. One timer looks now and then, so that requests need none."""
        if self._head_since is not None and self.loop.time() - self._head_since >= self.timeout_keep_alive:
            self._refuse(*_LATE)
        else:
            self._timer = self.loop.call_later(self.timeout_keep_alive, self._look_whether_late)
