"""Models whose load, run or unload takes long: what others notice of it, and what health and index say meanwhile."""

from __future__ import annotations

from http.client import HTTPConnection
from pathlib import Path

import pytest

from inputs.conftest import Serve
from inputs.live import LiveServer, ask, request
from inputs.models import COPY, config, copy, held
from inputs.repository import model
from inputs.waiting import reached, running, until

BUSY = """
    def initialize(self, args):
        import pathlib
        pathlib.Path({go!r} + ".reached").touch()
        while not pathlib.Path({go!r}).exists():
            sum(range(100_000))
"""


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    return shared(model("ident", copy()), "--model-control-mode=explicit", "--load-model=ident")


def hundred_requests(server: LiveServer) -> set[int]:
    """The statuses of 50 questions for liveness and 50 inferences on two connections that stay open."""
    connections = [HTTPConnection("127.0.0.1", server.ports[0], timeout=20) for _ in range(2)]
    statuses = set()
    for _ in range(50):
        statuses.add(ask(connections[0], "GET", "/v2/health/live").status)
        statuses.add(ask(connections[1], "POST", "/v2/models/ident/infer", request([1])).status)
    for connection in connections:
        connection.close()
    return statuses


@pytest.mark.parametrize("kind", ["waits", "computes"])
def test_a_slow_load_disturbs_nobody(server: LiveServer, tmp_path: Path, kind: str) -> None:
    go = tmp_path / "go"
    source = held(tmp_path, initialize="go") if kind == "waits" else COPY + BUSY.format(go=str(go))
    server.add(kind, {"config.pbtxt": config(), "1/model.py": source})
    with running(lambda: server.load(kind), go) as load:
        assert reached(go)
        assert hundred_requests(server) == {200}
        assert server.states(kind) == {"1": "LOADING"}
        assert not load.done()
    assert load.result().status == 200
    assert server.output(kind, [2]) == [2]


def test_a_slow_unload_disturbs_nobody_and_is_awaited(server: LiveServer, tmp_path: Path) -> None:
    go = tmp_path / "go"
    server.add("clings", {"config.pbtxt": config(), "1/model.py": held(tmp_path, finalize="go")})
    assert server.load("clings").status == 200
    with running(lambda: server.unload("clings"), go) as unload:
        assert reached(go)
        assert hundred_requests(server) == {200}
        assert server.infer("clings", [1], version="1").status == 503
        assert server.states("clings") == {"1": "UNLOADING"} or server.states("clings") == {"1": "UNAVAILABLE"}
        assert not unload.done()
    assert unload.result().status == 200
    assert server.reason("clings") == "unloaded"


def test_a_slow_request_disturbs_no_other_model(server: LiveServer, tmp_path: Path) -> None:
    go = tmp_path / "go"
    server.add("ponders", {"config.pbtxt": config(), "1/model.py": held(tmp_path, execute="go")})
    assert server.load("ponders").status == 200
    with running(lambda: server.infer("ponders", [1]), go) as answer:
        assert reached(go)
        assert hundred_requests(server) == {200}
        assert not answer.done()
    assert answer.result().status == 200


@pytest.mark.parametrize("flags, ready", [([], False), (["--readiness=initial"], True), (["--readiness=none"], True)])
def test_health_during_a_slow_load(serve: Serve, tmp_path: Path, flags: list[str], ready: bool) -> None:
    server = serve(model("ident", copy()), "--model-control-mode=explicit", "--load-model=ident", *flags)
    server.add("slow", {"config.pbtxt": config(), "1/model.py": held(tmp_path, initialize="go")})
    assert server.get("/v2/health/ready").status == 200
    with running(lambda: server.load("slow"), tmp_path / "go"):
        assert server.get("/v2/health/live").status == 200
        assert (server.get("/v2/health/ready").status == 200) is ready
        assert server.get("/v2/models/slow/ready").status != 200
    until(lambda: server.get("/v2/health/ready").status == 200)


def test_the_end_under_traffic(serve: Serve, tmp_path: Path) -> None:
    files = {**model("ident", copy()), **model("slow", {"config.pbtxt": config(), "1/model.py": held(tmp_path, execute="go")})}
    server = serve(files, "--shutdown-grace-secs=2")
    with running(lambda: server.infer("slow", [5]), tmp_path / "go") as answer:
        server.terminate()
        until(lambda: server.get("/v2/health/ready").status != 200)
        assert server.get("/v2/health/live").status == 200
        assert server.output("ident", [1]) == [1]
    assert answer.result().json["outputs"][0]["data"] == [5]
    assert server.process.wait(20) == 0
