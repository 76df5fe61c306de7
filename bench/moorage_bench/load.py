"""Loads one server for a bounded time and says how many requests it answered in a second."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

from moorage_bench.requests import HttpRequest
from moorage_bench.servers import Running
from moorage_bench.tools import Tool

_GRACE_S = 20.0
_HOST = "127.0.0.1"
_CHUNK = 1 << 20


class LoadError(Exception):
    """A server answered wrongly under load, or a load generator failed: there is nothing to compare."""


def wrk(tool: Tool, server: Running, request: HttpRequest, script: Path, connections: int, seconds: float) -> float:
    """Requests per second over this many connections, by wrk on one thread."""
    lua = request.write_lua(script)
    whole = max(1, round(seconds))
    url = f"http://{_HOST}:{server.ports.http}{request.path}"
    words = ["-t1", f"-c{connections}", f"-d{whole}s", "-s", str(lua), url]
    printed = _printed(tool, words, whole + _GRACE_S, server.name)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)|Socket errors: (.*)", printed)
    if refused:
        raise LoadError(f"{server.name}: wrk saw {refused[0]}")
    return _number(r"Requests/sec:\s+([\d.]+)", printed, server.name)


def perf_analyzer(tool: Tool, server: Running, model: str, columns: int, connections: int, seconds: float) -> float:
    """Requests per second over gRPC, by perf_analyzer: three windows of a third of the time each."""
    window_ms = max(100, round(seconds * 1000 / 3))
    words = ["-m", model, "-u", f"{_HOST}:{server.ports.grpc}", "-i", "grpc", "-b", "1", "--shape", f"INPUT0:{columns}"]
    words += ["--concurrency-range", str(connections), "-p", str(window_ms), "-r", "3", "-s", "999"]
    printed = _printed(tool, words, seconds * 3 + _GRACE_S, server.name)
    return _number(r"throughput: ([\d.]+) infer/sec", printed, server.name)


def one_connection(server: Running, request: HttpRequest, seconds: float) -> float:
    """Requests per second over one connection, one after the other, by a socket and nothing else.

    For large bodies, where a general client would itself be the bottleneck: the answer is received into one buffer.
    """
    head = request.raw(f"{_HOST}:{server.ports.http}")
    with closing(socket.create_connection((_HOST, server.ports.http), timeout=_GRACE_S)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = bytearray(len(request.body) + _CHUNK)
        done = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds or not done:
            connection.sendall(head)
            connection.sendall(request.body)
            _receive(connection, buffer, server.name)
            done += 1
        return done / elapsed


def latencies(server: Running, request: HttpRequest, seconds: float) -> list[float]:
    """Seconds that each request took over one connection, one after the other. Raises LoadError if one is not answered."""
    raw = request.raw(f"{_HOST}:{server.ports.http}") + request.body
    taken: list[float] = []
    with closing(socket.create_connection((_HOST, server.ports.http), timeout=_GRACE_S)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        buffer = bytearray(len(request.body) + _CHUNK)
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end or not taken:
            connection.sendall(raw)
            _receive(connection, buffer, server.name)
            taken.append(time.perf_counter() - start)
    return taken


def check(server: Running, request: HttpRequest) -> None:
    """Send the request once and look at the answer. Raises LoadError if it is not what it should be."""
    with closing(socket.create_connection((_HOST, server.ports.http), timeout=_GRACE_S)) as connection:
        connection.sendall(request.raw(f"{_HOST}:{server.ports.http}") + request.body)
        buffer = bytearray(len(request.body) + _CHUNK)
        end = _receive(connection, buffer, server.name)
    if request.expect not in memoryview(buffer)[:end].tobytes():
        raise LoadError(f"{server.name}: the answer to {request.path} does not hold the expected result")


def _receive(connection: socket.socket, buffer: bytearray, name: str) -> int:
    """Receive one response into the buffer. Returns its length, head included."""
    view = memoryview(buffer)
    filled = 0
    end = 0
    while not end or filled < end:
        got = connection.recv_into(view[filled:])
        if not got:
            raise LoadError(f"{name}: closed the connection within a response")
        filled += got
        if not end:
            end = _length(buffer, filled, name)
    return end


def _length(buffer: bytearray, filled: int, name: str) -> int:
    """Length of the whole response, or 0 while its head has not arrived."""
    head_end = buffer.find(b"\r\n\r\n", 0, filled)
    if head_end < 0:
        return 0
    head = bytes(buffer[:head_end])
    if not head.startswith(b"HTTP/1.1 200"):
        raise LoadError(f"{name}: answered {bytes(buffer[: min(filled, 400)])!r}")
    announced = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if announced is None:
        raise LoadError(f"{name}: answers without Content-Length, which this client needs")
    return head_end + 4 + int(announced[1])


def _printed(tool: Tool, words: list[str], limit_s: float, name: str) -> str:
    try:
        done = subprocess.run(
            [*tool.argv, *words], capture_output=True, text=True, timeout=limit_s, env=tool.environment(), check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LoadError(f"{name}: the load generator did not end within {limit_s:.0f} s") from error
    if done.returncode:
        raise LoadError(f"{name}: the load generator failed: {(done.stderr or done.stdout).strip()[-400:]}")
    return done.stdout


def _number(pattern: str, printed: str, name: str) -> float:
    found = re.search(pattern, printed)
    if found is None:
        raise LoadError(f"{name}: no reading in what the load generator printed: {printed.strip()[-400:]}")
    return float(found[1])
