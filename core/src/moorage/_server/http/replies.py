"""Answers that every endpoint gives: errors as JSON, and sending."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import orjson
from attrs import frozen

from moorage._server.http.asgi import Send
from moorage.errors import Code, MoorageError

STATUS: Final = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 400,
    Code.FORBIDDEN: 403,
    Code.UNAVAILABLE: 503,
    Code.UNSUPPORTED: 501,
    Code.TOO_LARGE: 413,
    Code.DEADLINE_EXCEEDED: 503,
    Code.CANCELLED: 400,
    Code.INTERNAL: 500,
    Code.UNKNOWN: 400,
}
"""The status of each kind of error, as Triton has them."""

JSON: Final = (b"content-type", b"application/json")
_JOIN_BELOW = 64 * 1024
_log = logging.getLogger("moorage.http")

Header = tuple[bytes, bytes]


@frozen
class Reply:
    """A whole response. The parts of the body are sent one after the other, without being copied."""

    status: int
    headers: Sequence[Header]
    body: Sequence[bytes | memoryview]


def error_reply(error: BaseException, *, close: bool = False) -> Reply:
    """The response to a request that failed. What is no MoorageError is our own fault: it is logged."""
    if isinstance(error, MoorageError):
        status = STATUS[error.code]
    else:
        status = 500
        _log.error("a request failed unexpectedly", exc_info=error)
    headers = [JSON, (b"connection", b"close")] if close else [JSON]
    return Reply(status, headers, [error_body(str(error) or type(error).__name__)])


def error_body(message: str) -> bytes:
    """The JSON that tells an error."""
    return orjson.dumps({"error": message.encode("utf-8", "replace").decode()})


async def send_reply(send: Send, reply: Reply) -> None:
    """Send a response; small parts are joined, large ones are handed over as they are."""
    parts = reply.body
    size = sum(map(len, parts))
    if len(parts) > 1 and size < _JOIN_BELOW:
        parts = [b"".join(parts)]
    headers = [*reply.headers, (b"content-length", b"%d" % size)]
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    last = len(parts) - 1
    for number, part in enumerate(parts):
        message: Any = {"type": "http.response.body", "body": part, "more_body": number < last}
        await send(message)
