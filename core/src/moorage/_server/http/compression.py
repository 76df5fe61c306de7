"""Content codings: gzip and deflate, both ways."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Sequence
from typing import Any

from moorage._server.http.asgi import Send
from moorage.errors import RequestError, TooLarge, Unsupported

_OFFERED = ("gzip", "deflate")
_WINDOW = {"gzip": 31, "deflate": 15}
_RAW_DEFLATE = -15
_ON_A_THREAD_FROM = 256 * 1024
_LEVEL = 1
_FEED = 1024


async def decode_body(body: memoryview, codings: str, limit: int) -> memoryview:
    """A request's body without its `Content-Encoding`, at most `limit` bytes of it."""
    for coding in reversed([part.strip().lower() for part in codings.split(",")]):
        if coding in ("identity", ""):
            continue
        if coding not in _WINDOW and coding != "x-gzip":
            raise Unsupported(f"content encoding '{coding}': send gzip or deflate, or no encoding")
        name = coding.removeprefix("x-")
        if len(body) >= _ON_A_THREAD_FROM:
            body = memoryview(await asyncio.to_thread(decompress, body, name, limit))
        else:
            body = memoryview(decompress(body, name, limit))
    return body


def decompress(data: bytes | memoryview, coding: str, limit: int) -> bytes:
    """Decompress gzip (any number of members) or deflate (with or without the zlib wrapper).

    Raises RequestError if the data is broken or cut off, TooLarge if more than `limit` bytes come out.
    """
    window = _WINDOW[coding]
    if coding == "deflate" and not _has_zlib_header(data):
        window = _RAW_DEFLATE
    view = memoryview(data)
    parts: list[bytes] = []
    at, room = 0, limit
    while at < len(view) or not at:
        part, size = _one_member(view[at:], window, coding, room, len(view) if not at else _FEED)
        parts.append(part)
        room -= len(part)
        at += size
        if coding != "gzip" and at < len(view):
            raise RequestError(f"the {coding} body has {len(view) - at} stray bytes at its end")
    return b"".join(parts)


def _one_member(data: memoryview, window: int, coding: str, room: int, feed: int) -> tuple[bytes, int]:
    """What the member at the beginning of `data` holds, and how long it is there.

    zlib copies what it was given beyond the member's end. So that many small members do not copy the whole body each, they are
    fed `feed` bytes first, then twice as many, and so on.
    """
    engine = zlib.decompressobj(window)
    found = bytearray()
    at = 0
    while True:
        try:
            found += engine.decompress(data[at : at + feed], room + 1 - len(found))
        except zlib.error as error:
            raise RequestError(f"the body is no {coding} data: {error}") from error
        if len(found) > room:
            raise TooLarge("the decompressed body is larger than --http-max-input-size allows")
        at, feed = at + feed, feed * 2
        if engine.eof:
            return bytes(found), min(at, len(data)) - len(engine.unused_data)
        if at >= len(data):
            raise RequestError(f"the {coding} body is cut off")


def _has_zlib_header(data: bytes | memoryview) -> bool:
    return len(data) >= 2 and data[0] & 0x0F == 8 and (data[0] * 256 + data[1]) % 31 == 0


def accepted_coding(header: str) -> str:
    """The coding for a response that `Accept-Encoding` prefers among ours, or "" for none."""
    weights: dict[str, float] = {}
    for item in header.split(","):
        name, _, parameters = item.partition(";")
        weights[name.strip().lower()] = _weight(parameters)
    anything = weights.get("*", 0.0)
    ranked = [(weights.get(name, anything), name) for name in _OFFERED]
    best, name = max(ranked, key=lambda pair: pair[0])
    return name if best > 0 and best >= weights.get("identity", 0.0) else ""


def _weight(parameters: str) -> float:
    for parameter in parameters.split(";"):
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def compress(parts: Sequence[bytes | memoryview], coding: str) -> bytes:
    """The parts, joined and compressed."""
    engine = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW[coding])
    return b"".join([*(engine.compress(part) for part in parts), engine.flush()])


class CompressedSend:
    """Wraps the `send` of one request: compresses its response when the body is complete.

    Errors are sent as they are: the usual clients read them without looking for a coding.
    """

    def __init__(self, send: Send, coding: str) -> None:
        self._send = send
        self._coding = coding
        self._start: Any = None
        self._parts: list[bytes | memoryview] = []

    async def __call__(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self._start = message
            return
        self._parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            await self._finish()

    async def _finish(self) -> None:
        start, parts = self._start, self._parts
        if start["status"] == 200 and any(map(len, parts)):
            large = sum(map(len, parts)) >= _ON_A_THREAD_FROM
            body = await asyncio.to_thread(compress, parts, self._coding) if large else compress(parts, self._coding)
            kept = [(name, value) for name, value in start["headers"] if name.lower() != b"content-length"]
            coded = [(b"content-encoding", self._coding.encode()), (b"vary", b"accept-encoding")]
            start = {**start, "headers": [*kept, *coded, (b"content-length", b"%d" % len(body))]}
            parts = [body]
        await self._send(start)
        await self._send({"type": "http.response.body", "body": b"".join(parts), "more_body": False})
