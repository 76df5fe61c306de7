"""Heads that are broken, endless or unfinished: an answer in JSON, and the end of the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from moorage._server.http import HttpOptions, HttpServer, build_app
from moorage._server.http.limits import LONGEST_HEAD

BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}).encode()
POST = b"POST /v2/models/ident/infer HTTP/1.1\r\nHost: x\r\n"
GOOD = POST + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
async def server(inference: Any, admin: Any) -> AsyncIterator[HttpServer]:
    options = HttpOptions(port=0, metrics_port=None, keep_alive_seconds=1)
    server = HttpServer(build_app(inference, admin, options), options)
    await server.start()
    yield server
    await server.stop(1)


async def talk(server: HttpServer, data: bytes | Iterator[bytes]) -> bytes:
    """All that the server says until it closes; it must close."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        for piece in [data] if isinstance(data, bytes) else data:
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(_all(reader), 10)
    except ConnectionError:
        return await _all(reader)
    finally:
        writer.close()


async def _all(reader: asyncio.StreamReader) -> bytes:
    said = bytearray()
    try:
        while piece := await reader.read(65536):
            said += piece
    except ConnectionError:
        pass
    return bytes(said)


def answers(said: bytes) -> list[tuple[int, bytes]]:
    """Status and body of each response."""
    found = []
    while said:
        head, _, rest = said.partition(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
        found.append((int(head.split()[1]), rest[:length]))
        said = rest[length:]
    return found


BROKEN = {
    "garbage": b"\x16\x03\x01 hello",
    "unknown method": b"FOO / HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": POST + b"Content-Length: -1\r\n\r\n",
    "folded header": POST + b"A: b\r\n c\r\n\r\n",
    "chunk without a size": CHUNKED + b"xyz\r\n",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
async def test_what_is_no_http_gets_an_answer_in_json(server: HttpServer, data: bytes) -> None:
    ((status, body),) = answers(await talk(server, data))
    assert (status, json.loads(body)) == (400, {"error": "this is no valid HTTP request"})


def _endless(first: bytes, then: bytes) -> Iterator[bytes]:
    yield first
    for _ in range(2 * LONGEST_HEAD // len(then)):
        yield then


LONG = {
    "target": (b"GET /", b"a" * 8000),
    "header": (POST + b"A: ", b"a" * 8000),
    "headers": (POST, b"A: b\r\n" * 1000),
    "blank lines": (b"", b"\r\n" * 4000),
    "trailers": (CHUNKED + b"2\r\n{}\r\n0\r\n", b"A: b\r\n" * 1000),
    "chunk extension": (CHUNKED + b"2;a=", b"a" * 8000),
}


@pytest.mark.parametrize("first, then", LONG.values(), ids=LONG.keys())
async def test_what_never_ends_is_not_kept(server: HttpServer, first: bytes, then: bytes) -> None:
    said = await talk(server, _endless(first, then))
    assert [status for status, _ in answers(said)] in ([431], [])  # nothing, if the reset overtook the answer


async def test_a_long_head_that_fits_passes(server: HttpServer) -> None:
    head = POST + b"A: %b\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % (b"a" * (LONGEST_HEAD // 2), len(BODY))
    ((status, _),) = answers(await talk(server, head + BODY))
    assert status == 200


async def test_a_long_body_is_no_long_head(server: HttpServer) -> None:
    data = BODY[:-1] + b" " * (3 * LONGEST_HEAD) + b"}"
    first = POST + b"Content-Length: %d\r\n\r\n" % len(data) + data
    again = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(data) + data
    assert [status for status, _ in answers(await talk(server, first + again))] == [200, 200]


@pytest.mark.parametrize("data", [b"", b"GET /v2 HTTP/1.1\r\nHost:"], ids=["nothing", "half a head"])
async def test_a_head_that_does_not_come_is_not_waited_for(server: HttpServer, data: bytes) -> None:
    ((status, _),) = answers(await talk(server, data))
    assert status == 408


async def test_garbage_behind_a_request_does_not_take_its_answer(server: HttpServer, inference: Any) -> None:
    inference.wait = asyncio.Event()
    talking = asyncio.create_task(talk(server, GOOD + b"\x00garbage\r\n\r\n"))
    await inference.begun.wait()
    inference.wait.set()
    ((status, body),) = answers(await talking)
    assert status == 200 and b"outputs" in body
