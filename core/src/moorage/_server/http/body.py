"""Reading a request's body into one buffer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from moorage._server.http.asgi import READ_INTO, Receive, Scope
from moorage._server.http.compression import decode_body
from moorage.errors import Cancelled, RequestError, TooLarge

_ALIGNMENT = 64
_GONE = "the client closed the connection"


async def read_body(
    scope: Scope, receive: Receive, headers: Mapping[bytes, bytes], limit: int, align_at: int = 0
) -> memoryview:
    """The decoded body of a request.

    The byte at offset `align_at` lies at a multiple of 16 in memory if the body is large, so that a tensor which
    begins there can be used in place. Raises TooLarge beyond `limit` bytes, Cancelled if the client goes away before the end.
    """
    announced = announced_length(headers)
    if announced > limit:
        raise TooLarge(f"the body of {announced} bytes is larger than {limit} (--http-max-input-size)")
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Cancelled(_GONE)
    first = message["body"]
    if not message["more_body"]:
        body = memoryview(first)
    elif announced >= 0:
        pad = -align_at % _ALIGNMENT
        body = np.empty(pad + announced, dtype=np.uint8).data[pad:]  # not zeroed first, as a bytearray is
        await _read_announced(scope, receive, first, body)
    else:
        body = await _read_chunked(receive, first, limit)
    if len(body) > limit:
        raise TooLarge(f"the body is larger than {limit} bytes (--http-max-input-size)")
    coding = headers.get(b"content-encoding")
    return body if coding is None else await decode_body(body, coding.decode("latin-1"), limit)


def announced_length(headers: Mapping[bytes, bytes]) -> int:
    """The Content-Length, or -1 if there is none."""
    value = headers.get(b"content-length")
    if value is None:
        return -1
    if not value.isdigit() or len(value) > 18:
        raise RequestError("Content-Length is not a whole number")
    return int(value)


async def _read_announced(scope: Scope, receive: Receive, first: bytes, body: memoryview) -> None:
    length, at = len(body), len(first)
    if at > length:
        raise RequestError(f"the body is longer than its Content-Length {length}")
    body[:at] = first
    if read_into := (scope.get("extensions") or {}).get(READ_INTO):
        count = await read_into(body[at:])
        if count < 0:
            raise Cancelled(_GONE)
        at += count
    else:
        more = True
        while more:
            chunk, more = await _next_chunk(receive)
            if at + len(chunk) > length:
                raise RequestError(f"the body is longer than its Content-Length {length}")
            body[at : at + len(chunk)] = chunk
            at += len(chunk)
    if at != length:
        raise RequestError(f"the body has {at} bytes, its Content-Length is {length}")


async def _read_chunked(receive: Receive, first: bytes, limit: int) -> memoryview:
    body = bytearray(first)
    more = True
    while more:
        chunk, more = await _next_chunk(receive)
        if len(body) + len(chunk) > limit:
            raise TooLarge(f"the body is larger than {limit} bytes (--http-max-input-size)")
        body += chunk
    return memoryview(body)


async def _next_chunk(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Cancelled(_GONE)
    return message["body"], message["more_body"]
