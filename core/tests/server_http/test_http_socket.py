"""The server on a real socket."""

import asyncio
import http.client
import json
import socket
import struct
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.http

from moorage._server.http import HttpOptions, HttpServer, build_app
from moorage._server.http.listener import listen
from moorage._server.http.protocol import CorkedTransport
from moorage._server.metrics import metrics_app
from moorage.errors import Unavailable

PATH = "/v2/models/ident/infer"
BODY = json.dumps({"inputs": [{"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}]}).encode()


@pytest.fixture
async def server(inference: Any, admin: Any) -> AsyncIterator[HttpServer]:
    options = HttpOptions(port=0, metrics_port=0)
    server = HttpServer(build_app(inference, admin, options), options, metrics_app(admin))
    await server.start()
    yield server
    await server.stop(1)


async def off_loop(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


def connect(server: HttpServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)


async def raw(server: HttpServer, data: bytes) -> bytes:
    """All that the server says to these bytes, until it closes or says no more for a while."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(data)
    said = b""
    try:
        while piece := await asyncio.wait_for(reader.read(65536), 0.4):
            said += piece
    except TimeoutError:
        pass
    writer.close()
    return said


async def test_a_connection_outlives_errors(server: HttpServer) -> None:
    def talk() -> list[int]:
        connection = connect(server)
        statuses = []
        for method, path, body in (
            ("GET", "/v2/health/live", b""),
            ("GET", "/v2/nothing", b""),
            ("POST", PATH, BODY),
            ("POST", PATH, b"broken"),
            ("HEAD", "/v2/health/live", b""),
            ("POST", PATH, b"x" * 300_000),
            ("POST", PATH, BODY),
            ("GET", "/v2/health/ready", b""),
        ):
            connection.request(method, path, body)
            connection.auto_open = 0
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
        return statuses

    assert await off_loop(talk) == [200, 404, 200, 400, 405, 400, 200, 200]


@pytest.mark.parametrize("megabytes", [0.01, 0.3, 5])
async def test_large_tensors_both_ways(server: HttpServer, megabytes: float) -> None:
    data = np.random.default_rng(1).random(int(megabytes * 131072))

    def infer() -> Any:
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.port}")
        given = tritonclient.http.InferInput("X", list(data.shape), "FP64")
        given.set_data_from_numpy(data)
        wanted = tritonclient.http.InferRequestedOutput("X", binary_data=True)
        result = client.infer("ident", [given], outputs=[wanted]).as_numpy("X")
        client.close()
        return result

    np.testing.assert_array_equal(await off_loop(infer), data)


async def test_a_large_binary_tensor_is_used_in_place(server: HttpServer, inference: Any) -> None:
    size = 1_000_000
    part = {"name": "X", "datatype": "FP64", "shape": [size // 8], "parameters": {"binary_data_size": size}}
    text = json.dumps({"inputs": [part]}).encode()

    def post() -> int:
        connection = connect(server)
        connection.request("POST", PATH, text + bytes(size), {"Inference-Header-Content-Length": str(len(text))})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    assert await off_loop(post) == 200
    array = inference.seen[0].inputs["X"].array
    assert array.ctypes.data % 16 == 0
    assert not array.flags.owndata


async def test_triton_client(server: HttpServer) -> None:
    def talk() -> Any:
        client = tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.port}")
        assert client.is_server_live()
        assert client.is_model_ready("ident")
        text = tritonclient.http.InferInput("T", [2], "BYTES")
        text.set_data_from_numpy(np.array(["a", "zwölf"], dtype=object), binary_data=False)
        result = client.infer(
            "ident", [text], request_compression_algorithm="gzip", response_compression_algorithm="deflate", request_id="7"
        )
        index = client.get_model_repository_index()
        client.close()
        return result.as_numpy("T").tolist(), result.get_response()["id"], len(index)

    assert await off_loop(talk) == ([b"a", "zwölf".encode()], "7", 2)


async def test_chunked_upload(server: HttpServer) -> None:
    def post() -> int:
        connection = connect(server)
        connection.request("POST", PATH, (BODY[i : i + 9] for i in range(0, len(BODY), 9)), encode_chunked=True)
        status = connection.getresponse().status
        connection.close()
        return status

    assert await off_loop(post) == 200


async def test_http_1_0(server: HttpServer) -> None:
    said = await raw(server, b"GET /v2/health/live HTTP/1.0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200")
    assert b"connection: close" in said


async def test_pipelined_requests(server: HttpServer) -> None:
    post = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (PATH.encode(), len(BODY), BODY)
    said = await raw(server, post * 3)
    assert said.count(b"HTTP/1.1 200") == 3


async def test_expect_continue(server: HttpServer) -> None:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (PATH.encode(), len(BODY))
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head)
    assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 100")
    await reader.readline()
    writer.write(BODY)
    assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 200")
    writer.close()


SMUGGLED = b"0\r\n\r\nGET /v2/models/stats HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: chunked, identity\r\n",
        b"Content-Length: -5\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length : 5\r\n",
    ],
)
async def test_ambiguous_lengths_are_not_answered_twice(server: HttpServer, headers: bytes) -> None:
    said = await raw(server, b"POST " + PATH.encode() + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n" + SMUGGLED)
    assert said.count(b"HTTP/1.1") == 1
    assert said.startswith(b"HTTP/1.1 400")
    assert b"model_stats" not in said


async def test_a_client_that_leaves_in_the_middle_of_a_body(server: HttpServer, inference: Any) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" % PATH.encode() + bytes(200_000))
    await writer.drain()
    writer.transport.abort()
    said = await raw(server, b"GET /v2/health/live HTTP/1.0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200")
    assert not inference.seen


async def test_metrics_have_their_own_port(server: HttpServer) -> None:
    assert server.metrics_port not in (None, server.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
    writer.write(b"GET /metrics HTTP/1.0\r\n\r\n")
    assert b"nv_inference_count" in await asyncio.wait_for(reader.read(), 5)
    writer.close()


async def test_stop_waits_for_running_requests(inference: Any, admin: Any) -> None:
    options = HttpOptions(port=0, metrics_port=None)
    server = HttpServer(build_app(inference, admin, options), options)
    await server.start()
    inference.wait = asyncio.Event()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (PATH.encode(), len(BODY), BODY))
    await asyncio.wait_for(inference.begun.wait(), 5)
    stopping = asyncio.create_task(server.stop(10))
    inference.wait.set()
    assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 200")
    writer.close()
    await asyncio.wait_for(stopping, 5)
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", server.port)


async def test_a_taken_port_is_told(server: HttpServer, inference: Any, admin: Any) -> None:
    options = HttpOptions(port=server.port or 0, metrics_port=None)
    with pytest.raises(Unavailable, match=str(server.port)):
        await HttpServer(build_app(inference, admin, options), options).start()
    with pytest.raises(Unavailable, match="no-such-host"):
        listen("no-such-host.invalid", 1)


async def test_a_port_can_be_shared(inference: Any, admin: Any) -> None:
    first = HttpServer(build_app(inference, admin, HttpOptions()), HttpOptions(port=0, metrics_port=None, reuse_port=True))
    await first.start()
    options = HttpOptions(port=first.port or 0, metrics_port=None, reuse_port=True)
    second = HttpServer(build_app(inference, admin, options), options)
    await second.start()
    await asyncio.gather(first.stop(0), second.stop(0))


async def test_metrics_alone(admin: Any) -> None:
    server = HttpServer(None, HttpOptions(metrics_port=0), metrics_app(admin))
    await server.start()
    assert (server.port, bool(server.metrics_port)) == (None, True)
    await server.stop(0)


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.written.append(b"closed")

    def is_closing(self) -> bool:
        return False

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def test_small_writes_are_joined_in_order() -> None:
    wire = Wire()
    transport = CorkedTransport(wire, asyncio.get_running_loop())
    transport.write(b"head ")
    transport.write(b"body")
    assert wire.written == []
    await asyncio.sleep(0)
    large = bytes(100_000)
    transport.write(b"head")
    transport.write(large)
    transport.write(struct.pack("b", 65))
    transport.close()
    assert wire.written == [b"head body", b"head", large, b"A", b"closed"]


def test_sockets_do_not_block() -> None:
    with listen("127.0.0.1", 0) as sock:
        assert isinstance(sock, socket.socket)
        assert sock.getblocking() is False
