"""The life of a server in process: options, start, models that come and go, protocols on top, the end."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

import moorage
from moorage.config import parse_text, to_json
from moorage.errors import Internal, InvalidArgument, MoorageError, NotFound, Unavailable
from moorage.server import Server, ServerOptions
from moorage.testing import RepositoryBuilder

if TYPE_CHECKING:
    from core.tests.app.conftest import AddModel, Stage

Open = Callable[..., Server]
PATIENCE = 20.0


def numbers(*values: float) -> dict[str, np.ndarray]:
    return {"X": np.array(values, np.float32)}


def ask(url: str, data: bytes | None = None) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, data, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"modl_repository": "x"}, "did you mean 'model_repository'"),
            ({"zzz": 1}, "no option 'zzz'"),
            ({}, "no model repository"),
            ({"model_repository": 3}, "'model_repository' is 3"),
            ({"model_repository": [3]}, r"'model_repository' is \[3\]"),
            ({"model_repository": "x", "exit_timeout_secs": "3"}, "'exit_timeout_secs' is '3', it must be of type int"),
            ({"model_repository": "x", "strict_readiness": 1}, "must be of type bool"),
            ({"model_repository": "x", "grpc_infer_response_compression_level": "top"}, "one of none, low"),
            ({"model_repository": "x", "load_model": "m"}, "--load-model needs"),
        ],
    )
    def test_wrong_ones_are_named_at_once(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(MoorageError, match=words):
            Server(**options)

    def test_an_unknown_control_mode_is_named(self) -> None:
        with pytest.raises(MoorageError, match="sometimes"):
            Server(model_repository="x", model_control_mode="sometimes")

    def test_they_can_be_given_whole(self, repository: RepositoryBuilder) -> None:
        whole = ServerOptions(model_repository=(str(repository.path),), id="whole")
        with Server(whole, strict_readiness=False, repository_poll_secs=1) as server:
            assert server.options == ServerOptions(
                model_repository=(str(repository.path),), id="whole", strict_readiness=False, repository_poll_secs=1.0
            )
            assert server.metadata().name == "whole"


class TestStart:
    def test_nothing_can_be_asked_before(self, repository: RepositoryBuilder) -> None:
        server = Server(model_repository=repository.path)
        assert not server.live() and not server.ready()
        for question in (server.index, server.metadata, server.metrics, server.serve_http):
            with pytest.raises(Unavailable, match="has not been started"):
                question()
        with pytest.raises(Unavailable, match="start"):
            server.infer("double", numbers(1))
        assert server.close()

    def test_a_model_that_fails_ends_it(self, open_server: Open, add: AddModel, no_thread_is_left: None) -> None:
        add("broken")
        with pytest.raises(Internal, match=r"broken.*cannot be read"):
            open_server()
        server = open_server(exit_on_error=False)
        assert not server.ready() and server.ready("double") and not server.ready("broken")
        assert {entry.name: entry.state for entry in server.index()} == {"broken": "UNAVAILABLE", "double": "READY"}
        server.close()

    def test_it_happens_once(self, repository: RepositoryBuilder) -> None:
        server = Server(model_repository=repository.path)
        with server, pytest.raises(Unavailable, match="once"):
            server.start()
        with pytest.raises(Unavailable, match="once"):
            server.start()


class TestModels:
    def test_questions_are_answered(self, open_server: Open) -> None:
        server = open_server(id="mine")
        server.infer("double", numbers(1))
        assert server.live() and server.ready() and server.ready("double", 1) and not server.ready("double", "2")
        assert server.metadata().name == "mine" and "statistics" in server.metadata().extensions
        shown = server.metadata("double")
        assert (shown.versions, shown.inputs[0].datatype, shown.inputs[0].shape) == (("1",), "FP32", (-1,))
        assert server.config("double").backend == "trial"
        assert [entry.state for entry in server.index(ready=True)] == ["READY"]
        assert [(one.name, one.success.count) for one in server.statistics()] == [("double", 1)]
        assert 'nv_inference_count{model="double",version="1"} 1' in server.metrics()
        for question in (server.metadata, server.config):
            with pytest.raises(NotFound, match="nobody"):
                question("nobody")

    def test_they_come_and_go(self, open_server: Open, add: AddModel) -> None:
        server = open_server(model_control_mode="explicit")
        with pytest.raises(NotFound):
            server.infer("double", numbers(1))
        server.load("double")
        assert server.infer("double", numbers(1))["Y"].tolist() == [2]
        server.unload("double")
        with pytest.raises(NotFound):
            server.infer("double", numbers(1))
        add("broken")
        with pytest.raises(InvalidArgument, match="cannot be read"):
            server.load("broken")

    @pytest.mark.parametrize("form", ["text", "dict", "config"])
    def test_a_load_can_bring_configuration_and_files(self, open_server: Open, form: str) -> None:
        server = open_server(model_control_mode="explicit")
        given = parse_text(
            'backend: "trial" input [{ name: "X" data_type: TYPE_FP32 dims: [2] }] '
            'output [{ name: "Y" data_type: TYPE_FP32 dims: [2] }]'
        ).config
        text = (
            '{"backend": "trial", "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [2]}],'
            ' "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [2]}]}'
        )
        config: Any = {"text": text, "dict": to_json(given), "config": given}[form]
        server.load("double", config, {"1/model.trial": b"triple"})
        assert server.infer("double", numbers(1, 2))["Y"].tolist() == [3, 6]
        assert server.config("double").input[0].dims == (2,)

    def test_other_modes_leave_no_say(self, open_server: Open) -> None:
        with pytest.raises(Unavailable, match="explicit"):
            open_server().load("double")


class TestProtocols:
    def test_http_grpc_and_metrics_are_served_on_demand(self, open_server: Open) -> None:
        server = open_server()
        http, rpc, metrics = server.serve_http(0), server.serve_grpc(0), server.serve_metrics(port=0, address="127.0.0.1")
        assert ask(f"http://127.0.0.1:{http}/v2/health/ready")[0] == 200
        body = b'{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [4]}]}'
        status, answer = ask(f"http://127.0.0.1:{http}/v2/models/double/infer", body)
        assert (status, b"8" in answer) == (200, True)
        with grpc.insecure_channel(f"127.0.0.1:{rpc}") as channel:
            answered = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE)
        assert answered.status == health_pb2.HealthCheckResponse.SERVING
        assert b'nv_inference_count{model="double",version="1"} 1' in ask(f"http://127.0.0.1:{metrics}/metrics")[1]
        server.close()
        for port in (http, rpc, metrics):
            with pytest.raises(OSError, match="refused"):
                socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)

    def test_the_port_of_the_options_is_the_default(self, open_server: Open) -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            server = open_server(http_port=port)
            with pytest.raises(MoorageError, match=str(port)):
                server.serve_http()
        assert server.serve_http() == port
        assert ask(f"http://127.0.0.1:{port}/v2/health/live")[0] == 200

    def test_the_log_is_the_applications(self, open_server: Open) -> None:
        server = open_server(log_verbose=2)
        port = server.serve_http(0)
        status, answer = ask(f"http://127.0.0.1:{port}/v2/logging")
        assert status == 200 and b'"log_verbose_level":2' in answer.replace(b" ", b"")
        status, answer = ask(f"http://127.0.0.1:{port}/v2/logging", b'{"log_info": false}')
        assert status >= 400 and b"embedded" in answer


def test_two_servers_do_not_know_each_other(open_server: Open, tmp_path: Path) -> None:
    first = open_server()
    other = RepositoryBuilder(tmp_path / "other")
    other.add("double", {"1/model.trial": "triple"}, config=_config(first))
    second = open_server(model_repository=other.path, id="second")
    assert (first.metadata().name, second.metadata().name) == ("triton", "second")
    ports = {first.serve_http(0), second.serve_http(0), first.serve_grpc(0), second.serve_grpc(0)}
    assert len(ports) == 4
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda server: server.infer("double", numbers(1))["Y"][0], [first, second] * 50))
    assert answers == [2, 3] * 50
    first.close()
    assert second.infer("double", numbers(1))["Y"].tolist() == [3]
    assert [one.success.count for one in second.statistics()] == [51]


def _config(server: Server) -> str:
    return (Path(server.options.model_repository[0]) / "double" / "config.pbtxt").read_text()


class TestLogging:
    def test_the_applications_logging_is_left_alone(
        self, open_server: Open, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
    ) -> None:
        root = logging.getLogger()
        before = (list(root.handlers), root.level, structlog.is_configured(), structlog.get_config()["processors"])
        with caplog.at_level(logging.INFO, "moorage"):
            open_server().close()
        assert (list(root.handlers), root.level, structlog.is_configured(), structlog.get_config()["processors"]) == before
        messages = [record.getMessage() for record in caplog.records if record.name == "moorage"]
        assert "model model=double version=1 state=READY" in messages
        assert capfd.readouterr() == ("", "")

    def test_nothing_is_said_unasked(self, open_server: Open, caplog: pytest.LogCaptureFixture) -> None:
        open_server().close()
        assert not [record for record in caplog.records if record.name.startswith("moorage")]


class TestEnd:
    def test_running_requests_are_finished_and_new_ones_refused(
        self, open_server: Open, add: AddModel, stage: Stage, no_thread_is_left: None
    ) -> None:
        add("wait")
        server = open_server()
        server.serve_http(0)
        pending = server.submit("wait", numbers(1))
        stream = server.stream("wait", numbers(2))
        assert stage.entered.wait(PATIENCE)
        with ThreadPoolExecutor(1) as pool:
            closing = pool.submit(server.close)
            deadline = time.monotonic() + PATIENCE
            while server.live() and time.monotonic() < deadline:
                stage.gate.wait(0.001)
            for question in (server.index, server.metadata, lambda: server.infer("double", numbers(1))):
                with pytest.raises(Unavailable, match="closed"):
                    question()
            assert not server.ready() and not closing.done()
            stage.gate.set()
            assert closing.result(PATIENCE)
        assert pending.result(0)["Y"].tolist() == [2]
        assert [response["Y"].tolist() for response in stream] == [[4]]
        assert server.close()

    def test_patience_ends(self, open_server: Open, add: AddModel, stage: Stage) -> None:
        add("wait")
        server = open_server(exit_timeout_secs=0)
        pending = server.submit("wait", numbers(1))
        assert stage.entered.wait(PATIENCE)
        assert not server.close()
        stage.gate.set()
        assert pending.result(PATIENCE)["Y"].tolist() == [2]

    def test_a_server_that_is_dropped_warns_and_ends(self, repository: RepositoryBuilder, no_thread_is_left: None) -> None:
        dropped = [Server(model_repository=repository.path).start()]
        with pytest.warns(ResourceWarning, match="not closed"):
            dropped.clear()

    def test_its_own_loop_is_not_waited_in(self, open_server: Open) -> None:
        server = open_server()
        background = server._background
        assert background is not None

        async def index() -> None:
            server.index()

        with pytest.raises(RuntimeError, match="own event loop"):
            background.call(index())


class TestProcess:
    def test_the_package_is_light(self) -> None:
        code = "import moorage, sys; print(moorage.__version__, {'numpy', 'attrs', 'grpc', 'litestar'} & sys.modules.keys())"
        assert self.run(code).stdout.split()[1] == "set()"
        assert moorage.Server is Server
        with pytest.raises(AttributeError, match="nothing_like_this"):
            moorage.nothing_like_this  # noqa: B018

    def test_no_library_of_a_protocol_is_loaded_without_one(self, repository: RepositoryBuilder) -> None:
        repository.remove("double")
        code = f"""
            import moorage, sys
            with moorage.Server(model_repository={str(repository.path)!r}) as server:
                assert server.ready()
            print(sorted({{"grpc", "litestar", "uvicorn", "prometheus_client", "onnxruntime", "click"}} & sys.modules.keys()))
        """
        assert self.run(code).stdout == "[]\n"

    def test_warnings_are_errors(self, repository: RepositoryBuilder) -> None:
        repository.remove("double")
        code = f"""
            import asyncio, moorage
            with moorage.Server(model_repository={str(repository.path)!r}) as server:
                server.serve_http(0), server.serve_grpc(0), server.serve_metrics(0), server.index(), server.metrics()

            async def main():
                async with moorage.AsyncServer(model_repository={str(repository.path)!r}) as server:
                    await server.serve_http(0), await server.serve_grpc(0), await server.index()

            asyncio.run(main())
        """
        assert self.run(code).stderr == ""

    def test_a_forgotten_server_does_not_keep_the_process(self, repository: RepositoryBuilder) -> None:
        repository.remove("double")
        self.run(f"import moorage; server = moorage.Server(model_repository={str(repository.path)!r}).start()", "-I")

    @staticmethod
    def run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
        lines = code.splitlines()
        indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
        program = "\n".join(line[indent:] for line in lines)
        command = [sys.executable, *(flags or ("-W", "error")), "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done
