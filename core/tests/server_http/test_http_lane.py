"""The lane past ASGI: what takes it, and that nobody can tell but by the time it takes."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from moorage._server.http import HttpOptions, build_app
from moorage.errors import Unavailable

PATH = "/v2/models/ident/infer"
HEAD = b"POST /v2/models/ident/infer HTTP/1.1\r\n"
Connect = Callable[[Any], tuple[Any, Any]]


def body(name: str = "r", numbers: int = 2) -> bytes:
    part = {"name": "X", "datatype": "INT32", "shape": [numbers], "data": list(range(numbers))}
    return json.dumps({"id": name, "inputs": [part]}).encode()


def post(name: str = "r", start: bytes = HEAD, extra: bytes = b"", numbers: int = 2) -> bytes:
    content = body(name, numbers)
    return b"%bHost: x\r\n%bContent-Length: %d\r\n\r\n%b" % (start, extra, len(content), content)


def chunked(name: str = "r") -> bytes:
    content = body(name)
    return b"%bHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (HEAD, len(content), content)


class Counting:
    """The application, counting what comes to it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.lane = app.lane
        self.asked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked += 1
        await self._app(scope, receive, send)


@pytest.fixture
def app(inference: Any, admin: Any) -> Counting:
    return Counting(build_app(inference, admin, HttpOptions()))


@pytest.mark.parametrize(
    "data",
    [
        post(),
        post(extra=b"Connection: keep-alive\r\nAccept: */*\r\n"),
        post(start=b"POST /v2/models/ident/versions/1/infer HTTP/1.1\r\n"),
        post(start=b"POST /v2/models/%69dent/infer HTTP/1.1\r\n"),
    ],
)
async def test_plain_requests_take_the_lane(connect: Connect, app: Counting, data: bytes) -> None:
    protocol, wire = connect(app)
    for count in (1, 2):
        protocol.data_received(data)
        assert [answer.status for answer in await wire.answers(count)] == [200] * count
    assert (app.asked, protocol.server_state.total_requests) == (0, 2)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (post(start=HEAD.replace(b"1.1", b"1.0")), 200),
        (post(extra=b"Connection: close\r\n"), 200),
        (post(extra=b"Accept-Encoding: gzip\r\n"), 200),
        (post(extra=b"Content-Encoding: identity\r\n"), 200),
        (post(numbers=20_000), 200),
        (chunked(), 200),
        (post(start=HEAD.replace(b"infer", b"infer?x=/infer")), 200),
        (post(start=HEAD.replace(b"POST", b"PUT")), 405),
        (post(start=HEAD.replace(b"infer", b"infers")), 404),
    ],
)
async def test_everything_else_is_for_the_application(connect: Connect, app: Counting, data: bytes, status: int) -> None:
    protocol, wire = connect(app)
    protocol.data_received(data)
    (answer,) = await wire.answers(1)
    assert (answer.status, app.asked) == (status, 1)


async def test_who_must_be_told_to_continue_goes_to_the_application(connect: Connect, app: Counting) -> None:
    protocol, wire = connect(app)
    protocol.data_received(post(extra=b"Expect: 100-continue\r\n"))
    await asyncio.wait_for(wire.changed.wait(), 5)
    assert app.asked == 1


async def test_answers_are_the_same_to_the_byte(connect: Connect, app: Counting) -> None:
    said = []
    for extra in (b"", b"Content-Encoding: identity\r\n"):
        protocol, wire = connect(app)
        protocol.server_state.default_headers = [(b"date", b"today"), (b"x", b"y")]
        protocol.data_received(post(extra=extra) + post("broken", extra=extra).replace(b"INT32", b"INT33"))
        await wire.answers(2)
        said.append(wire.said)
    assert said[0] == said[1]
    assert app.asked == 3  # the second of the first connection was pipelined


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kinds=st.lists(st.sampled_from(["plain", "chunked", "broken"]), min_size=1, max_size=4), cuts=st.lists(st.integers(0, 800))
)
@example(kinds=["chunked", "plain", "plain"], cuts=[254, 255])  # the end of a body that is read in place, and another
async def test_however_the_bytes_come_the_answers_keep_their_order(
    connect: Connect, app: Counting, kinds: list[str], cuts: list[int]
) -> None:
    protocol, wire = connect(app)
    requests = []
    for number, kind in enumerate(kinds):
        name = f"{kind}-{number}"
        requests.append(chunked(name) if kind == "chunked" else post(name))
        if kind == "broken":
            requests[-1] = requests[-1].replace(b"INT32", b"INT33")
    data = b"".join(requests)
    for begin, end in itertools.pairwise([0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]):
        protocol.data_received(data[begin:end])
        await asyncio.sleep(0)
    answers = await wire.answers(len(kinds))
    told = ["broken" if "error" in answer.json else answer.json["id"] for answer in answers]
    assert told == ["broken" if kind == "broken" else f"{kind}-{number}" for number, kind in enumerate(kinds)]
    protocol.connection_lost(None)


async def test_a_client_that_goes_away_cancels_its_request(connect: Connect, app: Counting, inference: Any) -> None:
    inference.wait = asyncio.Event()
    protocol, wire = connect(app)
    protocol.data_received(post())
    await inference.begun.wait()
    protocol.data_received(post("behind"))
    protocol.connection_lost(ConnectionResetError())
    assert inference.seen[0].cancelled
    inference.wait.set()
    await asyncio.wait(inference.running)
    await asyncio.sleep(0)
    assert wire.said == b""
    assert protocol not in protocol.server_state.connections


async def test_a_client_that_goes_away_before_its_body_is_whole(connect: Connect, app: Counting, inference: Any) -> None:
    protocol, _ = connect(app)
    protocol.data_received(post()[:-5])
    protocol.connection_lost(None)
    assert not inference.seen


async def test_a_shutdown_waits_for_the_answer_and_makes_it_the_last(connect: Connect, app: Counting, inference: Any) -> None:
    inference.wait = asyncio.Event()
    protocol, wire = connect(app)
    protocol.data_received(post())
    await inference.begun.wait()
    protocol.shutdown()
    assert not wire.is_closing()
    inference.wait.set()
    (answer,) = await wire.answers(1)
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    assert wire.is_closing()


async def test_a_shutdown_closes_idle_connections(connect: Connect, app: Counting) -> None:
    protocol, wire = connect(app)
    protocol.data_received(post())
    await wire.answers(1)
    protocol.shutdown()
    assert wire.is_closing()


async def test_the_end_of_patience_cancels(connect: Connect, app: Counting, inference: Any) -> None:
    inference.wait = asyncio.Event()
    protocol, wire = connect(app)
    protocol.data_received(post())
    await inference.begun.wait()
    protocol.drop()
    assert inference.seen[0].cancelled
    assert wire.is_closing()
    inference.wait.set()
    await asyncio.wait(inference.running)
    assert wire.said == b""


async def test_idle_connections_are_closed_and_busy_ones_are_not(connect: Connect, app: Counting, inference: Any) -> None:
    protocol, wire = connect(app)
    protocol.timeout_keep_alive = 0.02
    inference.wait = asyncio.Event()
    protocol.data_received(post())
    await inference.begun.wait()
    protocol._look_whether_idle()
    assert not wire.is_closing()
    inference.wait.set()
    await wire.answers(1)
    assert not wire.is_closing()
    protocol.data_received(post())
    await wire.answers(2)
    protocol._look_whether_idle()  # the timer of the first request
    assert not wire.is_closing()
    since = asyncio.get_running_loop().time()
    await asyncio.wait_for(wire.closed.wait(), 5)
    assert asyncio.get_running_loop().time() - since > 0.015
    protocol.connection_lost(None)


async def test_a_lost_connection_leaves_no_timer(connect: Connect, app: Counting) -> None:
    protocol, wire = connect(app)
    protocol.data_received(post())
    await wire.answers(1)
    timer = protocol._idle_timer
    protocol.connection_lost(None)
    assert timer.cancelled()


async def test_who_does_not_read_answers_waits_in_the_application(connect: Connect, app: Counting) -> None:
    protocol, wire = connect(app)
    protocol.pause_writing()
    protocol.data_received(post())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (app.asked, wire.said) == (1, b"")
    protocol.resume_writing()
    await wire.answers(1)


async def test_a_second_result_is_not_sent(connect: Connect, app: Counting) -> None:
    results: list[Callable[[Any], None]] = []
    app.lane._start = lambda _request, answered: results.append(answered)
    protocol, wire = connect(app)
    protocol.data_received(post())
    results[0](Unavailable("first"))
    results[0](Unavailable("second"))
    (answer,) = await wire.answers(1)
    assert (answer.status, answer.json) == (503, {"error": "first"})
