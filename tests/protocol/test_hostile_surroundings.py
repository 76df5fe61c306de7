"""What operators, models and their surroundings do to a server, and what must go on nevertheless."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path

import pytest

from inputs.live import LiveServer
from inputs.models import COPY, config, copy

Serve = Callable[..., LiveServer]

STUCK = """
import threading
class TritonPythonModel:
    def initialize(self, args):
        threading.Event().wait()
"""


@pytest.fixture
def ports() -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    found = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return found


def wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the log holds a text."""
    limit = time.monotonic() + 60
    while text not in log.read_text(errors="replace"):
        assert process.poll() is None, log.read_text(errors="replace")
        assert time.monotonic() < limit, log.read_text(errors="replace")
        time.sleep(0.02)


def test_a_server_that_still_loads_ends_when_it_is_told_to(tmp_path: Path, ports: list[int]) -> None:
    version = tmp_path / "models" / "stuck" / "1"
    version.mkdir(parents=True)
    (version / "model.py").write_text(STUCK)
    (version.parent / "config.pbtxt").write_text(config())
    flags = [f"--{name}-port={port}" for name, port in zip(("http", "grpc", "metrics"), ports, strict=True)]
    command = [str(Path(sys.executable).with_name("moorage")), "serve", f"--model-repository={tmp_path / 'models'}", *flags]
    log = tmp_path / "log"
    with log.open("wb") as file:
        process = subprocess.Popen([*command, "--exit-timeout-secs=1"], stderr=file, stdout=file)
    try:
        wait_for("state=LOADING", log, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, log.read_text(errors="replace")
    finally:
        process.kill()
        process.wait()


def test_contents_that_nobody_expects_hide_no_model(tmp_path: Path, serve: Serve) -> None:
    models = tmp_path / "server-0" / "repository"
    (models / "pipe").mkdir(parents=True)
    os.mkfifo(models / "pipe" / "config.pbtxt")
    (models / "folder" / "config.pbtxt").mkdir(parents=True)
    (models / os.fsdecode(b"old\xff") / "1").mkdir(parents=True)
    (models / "line\nbreak" / "1").mkdir(parents=True)
    (models / "many" / "1").mkdir(parents=True)
    (models / "many" / "1" / "model.py").write_text(COPY)
    more = "instance_group [{ count: 1000000 kind: KIND_CPU }]"
    (models / "many" / "config.pbtxt").write_text(config("FP32", more))
    server = serve({f"good/{path}": content for path, content in copy().items()}, "--exit-on-error=false")
    assert server.output("good", [1.5]) == [1.5]
    assert server.get("/v2/models/stats").status == 200
    assert server.get("/metrics").status == 200
    reasons = {entry["name"]: entry.get("reason", "") for entry in server.index() if entry.get("state") != "READY"}
    assert "named pipe" in reasons["pipe"]
    assert "this is a folder" in reasons["folder"]
    assert "not UTF-8" in reasons["old\\xff"]
    assert "line\nbreak" in reasons
    assert "1024 instances" in reasons["many"]


def test_a_model_does_not_take_away_the_log(serve: Serve) -> None:
    code = "import logging\nlogging.basicConfig(force=True, level=logging.CRITICAL)\n" + str(copy()["1/model.py"])
    server = serve({"m/config.pbtxt": config(), "m/1/model.py": code})
    server.terminate()
    assert server.process.wait(20) == 0
    assert "ended" in server.log


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_stops_no_request(serve: Serve) -> None:
    server = serve({f"m/{path}": content for path, content in copy().items()}, "--log-file=/dev/full")
    assert server.output("m", [2.0]) == [2.0]
    assert server.close() == 0


def test_an_upload_that_is_cut_off_and_a_head_without_end(serve: Serve) -> None:
    server = serve({f"m/{path}": content for path, content in copy().items()})
    address = ("127.0.0.1", server.ports[0])
    for start in (
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n{",
        b"GET / HTTP/1.1\r\nA: ",
    ):
        with socket.create_connection(address) as cut:
            cut.sendall(start + b" " * 1000)
    connection = HTTPConnection(*address, timeout=20)
    connection.putrequest("GET", "/v2")
    connection.putheader("A", "b" * 1_000_000)
    try:
        connection.endheaders()
        assert connection.getresponse().status == 431
    except ConnectionError:
        pass  # the answer was overtaken by the end of the connection
    assert server.output("m", [2.0]) == [2.0]
