"""Mode poll with a server of its own: what people do to a repository, and what clients see of it."""

from __future__ import annotations

import hashlib
import shutil
import socket
import time
from collections.abc import Callable
from typing import Final

import pytest

from inputs.live import LiveServer
from inputs.models import BROKEN, VALUE, held, io
from inputs.repository import write
from management.conftest import Serve
from management.traffic import hammered

POLL: Final = ("--model-control-mode=poll", "--repository-poll-secs=0.2")
QUICK: Final = (*POLL, "--repository-settle-secs=0.3")
CONFIG: Final = f'backend: "python"\n{io()}'
PATIENCE: Final = 20.0


def value(number: float) -> str:
    return VALUE.format(value=float(number))


def eventually(holds: Callable[[], bool], server: LiveServer) -> None:
    """Ask again and again; the server's log is shown if it never comes true."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, server.log
        time.sleep(0.02)


def loads(server: LiveServer, model: str) -> int:
    """How often a version of the model has begun to serve."""
    return sum(f"model={model} " in line and "state=READY" in line for line in server.log.splitlines())


def until_answer(server: LiveServer, number: float) -> None:
    eventually(lambda: server.output("m") == [number], server)


def until_instances(server: LiveServer, count: int) -> None:
    eventually(lambda: server.get("/v2/models/m/config").json["instance_group"][0]["count"] == count, server)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def server(serve: Serve) -> LiveServer:
    made = serve({"m/config.pbtxt": CONFIG, "m/1/model.py": value(1)}, *QUICK)
    eventually(lambda: all(map(listens, made.ports)), made)
    return made


def test_half_an_upload_is_never_tried(server: LiveServer) -> None:
    code = value(2)
    folder = server.repository / "m/2"
    folder.mkdir()
    with hammered(server, "m", 1) as traffic, (folder / "model.py").open("w") as file:
        for number in range(20):
            file.write(code[number * len(code) // 20 : (number + 1) * len(code) // 20])
            file.flush()
            assert server.states("m") == {"1": "READY"}
            time.sleep(0.1)
    eventually(lambda: server.output("m") == [2], server)
    assert traffic.failures == []
    assert {call.answer for call in traffic.calls} <= {1, 2}
    assert "UNAVAILABLE" not in {state for version, state in server.states("m").items() if version == "2"}


def test_a_version_with_sums_waits_for_all_its_files(server: LiveServer) -> None:
    files = {"model.py": value(2), "weights/data": "data"}
    sums = "".join(f"{hashlib.sha256(content.encode()).hexdigest()}  {path}\n" for path, content in files.items())
    write(server.repository, {"m/2/SHA256SUMS": sums, "m/2/model.py": files["model.py"]})
    eventually(lambda: "weights/data" in server.log, server)
    assert server.states("m") == {"1": "READY"}
    write(server.repository, {"m/2/weights/data": "dat"})
    eventually(lambda: "does not match" in server.log, server)
    assert server.output("m") == [1]
    write(server.repository, {"m/2/weights/data": "data"})
    eventually(lambda: server.output("m") == [2], server)


def test_a_broken_model_holds_up_no_other_and_is_tried_again_when_it_is_mended(server: LiveServer) -> None:
    write(server.repository, {"bad/config.pbtxt": CONFIG, "bad/1/model.py": BROKEN})
    eventually(lambda: server.states("bad") == {"1": "UNAVAILABLE"}, server)
    write(server.repository, {"other/config.pbtxt": CONFIG, "other/1/model.py": value(7)})
    eventually(lambda: server.states("other") == {"1": "READY"}, server)
    failures = server.log.count("no_such_module_xyz")
    time.sleep(1)
    assert server.log.count("no_such_module_xyz") == failures, "it must not be tried at every poll"
    write(server.repository, {"bad/1/model.py": value(3)})
    eventually(lambda: server.states("bad") == {"1": "READY"}, server)
    shutil.rmtree(server.repository / "other")
    eventually(lambda: server.infer("other", [0]).status == 404, server)
    assert server.output("bad") == [3]


def test_twenty_polls_without_a_change_load_nothing(server: LiveServer) -> None:
    server.output("m")
    before = server.log
    time.sleep(20 * 0.2)
    assert server.log == before


def test_a_file_beside_a_folder_that_is_named_like_the_config_is_seen(serve: Serve) -> None:
    files = {"m/config.pbtxt": CONFIG, "m/config/extra.yaml": "", "m/1/model.py": value(1)}
    server = serve(files, *QUICK)
    write(server.repository, {"m/1/model.py": value(2)})
    eventually(lambda: server.output("m") == [2], server)


def test_tools_leave_no_trace(server: LiveServer) -> None:
    before = loads(server, "m")
    write(
        server.repository,
        {"m/1/.model.py.swp": "x", "m/1/model.py~": "x", "m/1/__pycache__/model.pyc": "x", "m/.git/HEAD": "x"},
    )
    write(server.repository, {"m/1/upload.part": "x", ".hidden/1/model.py": "x"})
    time.sleep(1)
    assert loads(server, "m") == before
    assert [entry["name"] for entry in server.index()] == ["m"]


def test_a_request_on_a_removed_version_is_answered(server: LiveServer) -> None:
    gate = server.repository.parent
    write(server.repository, {"m/2/model.py": held(gate, execute="go")})
    eventually(lambda: server.states("m").get("2") == "READY", server)
    with hammered(server, "m", 1) as traffic:
        eventually((gate / "go.reached").exists, server)
        shutil.rmtree(server.repository / "m/2")
        eventually(lambda: server.states("m")["1"] == "READY", server)
        (gate / "go").touch()
    assert traffic.failures == []
    assert len(traffic.calls) >= 2


def test_no_request_is_lost_while_versions_come_and_go(server: LiveServer) -> None:
    with hammered(server, "m", 2) as traffic:
        for number in range(2, 6):
            write(server.repository, {f"m/{number}/model.py": value(number)})
            until_answer(server, number)
        for number in range(5, 1, -1):
            shutil.rmtree(server.repository / f"m/{number}")
            until_answer(server, number - 1)
    assert traffic.failures == []
    assert {call.answer for call in traffic.calls} == {1, 2, 3, 4, 5}


def test_instances_come_and_go_without_a_reload(server: LiveServer) -> None:
    with hammered(server, "m", 2) as traffic:
        for count in (3, 1, 2):
            group = f"instance_group {{ count: {count} kind: KIND_CPU }}"
            write(server.repository, {"m/config.pbtxt": f"{CONFIG}\n{group}"})
            until_instances(server, count)
    assert traffic.failures == []


def test_a_repository_that_is_gone_for_a_while_changes_nothing(server: LiveServer) -> None:
    away = server.repository.with_name("away")
    server.repository.rename(away)
    eventually(lambda: "cannot be read" in server.log, server)
    time.sleep(1)
    assert server.output("m") == [1]
    assert server.log.count("cannot be read; its models") == 1
    away.rename(server.repository)
    eventually(lambda: "can be read again" in server.log, server)
    assert server.output("m") == [1]


def test_the_start_leaves_out_what_is_not_whole(serve: Serve) -> None:
    sums = f"{'0' * 64}  model.py\n"
    files = {"m/config.pbtxt": CONFIG, "m/1/model.py": value(1), "m/2/model.py": value(2), "m/2/SHA256SUMS": sums}
    server = serve(files, *QUICK)
    assert server.states("m") == {"1": "READY"}
    assert server.output("m") == [1]
