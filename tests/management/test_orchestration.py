"""What an orchestrator builds on: readiness while models come and go, and the way to the end."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Thread

import pytest

from inputs.live import LiveServer, Reply
from inputs.models import config, copy, held
from inputs.repository import Files, model
from management.conftest import Serve
from management.traffic import hammered

LIVE, READY = "/v2/health/live", "/v2/health/ready"


def ready(server: LiveServer) -> bool:
    return server.get(READY).status == 200


def wait_for(file: Path) -> None:
    limit = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < limit
        time.sleep(0.005)


def slow(folder: Path) -> dict[str, str | bytes]:
    """A model whose load waits for the file `go`."""
    return model("slow", {"config.pbtxt": config(), "1/model.py": held(folder, initialize="go")})


@pytest.mark.parametrize(
    "flags,while_loading",
    [
        ((), False),
        (("--readiness=all",), False),
        (("--readiness=initial",), True),
        (("--readiness=none",), True),
        (("--strict-readiness=false",), True),
    ],
)
def test_readiness_while_another_model_is_loaded(
    serve: Serve, tmp_path: Path, flags: tuple[str, ...], while_loading: bool
) -> None:
    server = serve({**model("quick", copy()), **slow(tmp_path)}, "--load-model=quick", *flags)
    assert ready(server)
    load = Thread(target=server.load, args=("slow",))
    load.start()
    wait_for(tmp_path / "go.reached")
    assert server.get(LIVE).status == 200
    assert ready(server) is while_loading
    (tmp_path / "go").touch()
    load.join()
    assert ready(server)


def test_a_replacement_that_is_loaded_does_not_count(serve: Serve, tmp_path: Path) -> None:
    server = serve(model("slow", copy()), "--load-model=slow")
    server.add("slow", {"1/model.py": held(tmp_path, initialize="go")})
    load = Thread(target=server.load, args=("slow",))
    load.start()
    wait_for(tmp_path / "go.reached")
    assert ready(server)
    (tmp_path / "go").touch()
    load.join()


def test_required_models_must_serve(serve: Serve) -> None:
    files = {**model("a", copy()), **model("b", copy()), **model("c", copy())}
    server = serve(files, "--load-model=a", "--required-models=a, b", "--required-models=c", "--readiness=none")
    assert not ready(server)
    server.load("b")
    assert not ready(server)
    server.load("c")
    assert ready(server)
    server.unload("a")
    assert not ready(server)


def test_an_unloaded_model_that_is_not_required_does_not_count(serve: Serve) -> None:
    server = serve(model("a", copy()), "--load-model=a")
    server.unload("a")
    assert ready(server)


def test_a_failed_model_counts_until_it_is_unloaded(serve: Serve) -> None:
    server = serve(model("a", {**copy(), "1/model.py": "import nowhere_xyz"}))
    assert "nowhere_xyz" in server.load("a").error
    assert not ready(server)
    assert server.unload("a").status == 200
    assert ready(server)


def test_the_end_begins_with_not_ready_and_loses_no_request(serve: Serve, tmp_path: Path) -> None:
    """Readiness ends first; requests go on during the grace period, running ones even after it; then the server ends well."""
    files: Files = {
        **model("a", copy()),
        **model("long", {"config.pbtxt": config(), "1/model.py": held(tmp_path, execute="go")}),
    }
    server = serve(files, "--load-model=*", "--shutdown-grace-secs=2")
    answers: list[Reply] = []
    long = Thread(target=lambda: answers.append(server.infer("long", [1.0])))
    long.start()
    wait_for(tmp_path / "go.reached")
    with hammered(server, "a", 1) as traffic:
        began = time.monotonic()
        server.terminate()
        while ready(server):
            time.sleep(0.01)
        noticed = time.monotonic() - began
        assert server.get(LIVE).status == 200
        while time.monotonic() < began + 1.5:
            assert server.infer("a", [1.0]).status == 200
            time.sleep(0.05)
    assert noticed < 1
    assert not traffic.failures
    while server.infer("a", [1.0]).status != 503:
        time.sleep(0.05)
    assert time.monotonic() - began > 1.9
    assert not answers
    (tmp_path / "go").touch()
    long.join()
    assert [answer.status for answer in answers] == [200]
    assert server.process.wait(20) == 0
