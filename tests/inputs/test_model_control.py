"""Loading, loading again and unloading as clients ask for it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import BROKEN, COPY, VALUE, config, copy, held, json_config
from inputs.repository import model
from inputs.waiting import running

ALL = "version_policy: { all { }}"
COUNTS = """
    def initialize(self, args):
        import pathlib
        with (pathlib.Path(args["model_repository"]).parent.parent / f"{args['model_name']}.starts").open("a") as file:
            file.write(args["model_version"])
"""


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    return shared(model("ident", copy()), "--model-control-mode=explicit", "--load-model=ident", "--allow-model-override=true")


def values(*versions: int, more: str = "") -> dict[str, str]:
    return {"config.pbtxt": config(more=more), **{f"{one}/model.py": VALUE.format(value=one) for one in versions}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def starts(server: LiveServer, name: str) -> str:
    """The versions whose instances have been made, in order."""
    file = server.repository.parent / f"{name}.starts"
    return file.read_text() if file.exists() else ""


@pytest.mark.parametrize("action", ["load", "unload"])
@pytest.mark.parametrize("mode", ["none", "poll"])
def test_a_mode_in_which_clients_have_no_say_is_named_with_the_flag(serve: Serve, mode: str, action: str) -> None:
    server = serve(model("ident", copy()), f"--model-control-mode={mode}")
    reply = server.post(f"/v2/repository/models/ident/{action}")
    assert reply.status >= 400
    assert mode.upper() in reply.error
    assert "--model-control-mode=explicit" in reply.error
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}")
    with client, pytest.raises(InferenceServerException, match=mode.upper()):
        client.load_model("ident") if action == "load" else client.unload_model("ident")
    assert server.output("ident", [1]) == [1]


def test_unloading_what_is_not_loaded_does_nothing(server: LiveServer, name: str) -> None:
    server.add(name, copy())
    for unloaded in (name, "nobody_knows_it"):
        assert server.unload(unloaded).status == 200
    assert server.index(name) == [{"name": name}]


def test_failed_loads_say_why_and_the_index_keeps_it(server: LiveServer, name: str) -> None:
    assert server.load("missing_one").status == 404
    assert "missing_one" in server.load("missing_one").error
    server.add(f"{name}_config", {"config.pbtxt": "\nmax_batchsize: 1", "1/model.py": COPY})
    server.add(f"{name}_import", {"config.pbtxt": config(), "1/model.py": BROKEN})
    for wrong, words in ((f"{name}_config", "config.pbtxt:2:1"), (f"{name}_import", "No module named 'no_such_module_xyz'")):
        reply = server.load(wrong)
        assert reply.status == 400
        assert words in reply.error
        assert words in server.reason(wrong)
    reply = server.load("ident", {"file:1/model.py": encoded(COPY)})
    assert reply.status == 400
    assert "config" in reply.error
    assert server.output("ident", [1]) == [1]


def test_an_unload_returns_when_the_model_has_ended(server: LiveServer, name: str, tmp_path: Path) -> None:
    server.add(name, {"config.pbtxt": config(), "1/model.py": held(tmp_path, finalize="go")})
    server.load(name)
    with running(lambda: server.unload(name), tmp_path / "go") as unload:
        assert not unload.done()
    assert unload.result().status == 200
    assert server.reason(name) == "unloaded"


@pytest.mark.parametrize("action", ["load", "unload"])
def test_a_slash_at_the_end_changes_nothing(server: LiveServer, action: str) -> None:
    assert server.post(f"/v2/repository/models/ident/{action}/").status == 200
    assert server.load("ident").status == 200


def test_files_of_a_load_and_back_to_the_repository(server: LiveServer, name: str) -> None:
    server.add(name, values(1))
    given = {"config": json_config(), "file:2/model.py": encoded(VALUE.format(value=22))}
    assert server.load(name, given).status == 200
    assert server.output(name) == [22]
    assert server.get(f"/v2/models/{name}").json["versions"] == ["2"]
    assert server.states(name)["2"] == "READY"
    assert server.load(name).status == 200
    assert server.output(name) == [1]
    assert server.get(f"/v2/models/{name}").json["versions"] == ["1"]


def test_a_model_of_files_of_a_load_alone_is_listed_while_it_serves(server: LiveServer, name: str) -> None:
    assert server.load(name, {"config": json_config(), "file:1/model.py": encoded(COPY)}).status == 200
    assert server.states(name) == {"1": "READY"}
    assert server.output(name, [6]) == [6]
    assert server.unload(name).status == 200


def test_the_official_clients_bring_files(server: LiveServer, name: str) -> None:
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.ports[0]}") as client:
        client.load_model(f"{name}_http", config=json_config(), files={"file:1/model.py": COPY.encode()})
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        client.load_model(f"{name}_grpc", config=json_config(), files={"file:1/model.py": COPY.encode()})
        assert client.is_model_ready(f"{name}_grpc")
    assert server.output(f"{name}_http", [1]) == [1]


def test_files_of_a_load_are_refused_unless_allowed(serve: Serve) -> None:
    server = serve(model("ident", copy()), "--model-control-mode=explicit")
    reply = server.load("ident", {"config": json_config(), "file:1/model.py": encoded(COPY)})
    assert reply.status == 403
    assert "--allow-model-override" in reply.error
    client = tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}")
    with client, pytest.raises(InferenceServerException, match="--allow-model-override"):
        client.load_model("ident", config=json_config(), files={"file:1/model.py": COPY.encode()})
    assert server.load("ident").status == 200


def test_a_configuration_of_a_load_holds_until_the_next(server: LiveServer, name: str) -> None:
    def size() -> object:
        return server.get(f"/v2/models/{name}/config").json["max_batch_size"]

    server.add(name, copy(more="max_batch_size: 4"))
    assert server.load(name, {"config": json_config(max_batch_size=2)}).status == 200
    assert size() == 2
    assert server.load(name).status == 200
    assert size() == 4


PARAMETERS: list[tuple[Any, str]] = [
    ({"foo": "x"}, "foo"), ({"config": 5}, "config"), ({"config": None}, "config"), ({"config": {}}, "config"),
    ({"Config": "{}"}, "Config"), ({"reload": "sometimes"}, "reload"), ({"reload": True}, "reload"), ({"file": "eA=="}, "file"),
    ({"config": "{"}, "config"), ({"config": "[]"}, "config"), ({"": ""}, "''"),
]  # fmt: skip


@pytest.mark.parametrize("parameters, word", PARAMETERS)
def test_wrong_parameters_of_a_load_are_named(server: LiveServer, parameters: Any, word: str) -> None:
    reply = server.load("ident", parameters)
    assert reply.status == 400
    assert word in reply.error
    assert "ident" in reply.error
    assert server.output("ident", [1]) == [1]


def test_a_load_of_what_is_unchanged_starts_nothing(server: LiveServer, name: str) -> None:
    server.add(name, {"config.pbtxt": config(), "1/model.py": COPY + COUNTS})
    for _ in range(2):
        assert server.load(name).status == 200
    assert starts(server, name) == "1"
    assert server.load(name, {"reload": "always"}).status == 200
    assert starts(server, name) == "11"


def test_a_new_version_leaves_the_old_one_alone(server: LiveServer, name: str) -> None:
    server.add(name, {"config.pbtxt": config(more=ALL), "1/model.py": COPY + COUNTS})
    server.load(name)
    server.add(name, {"2/model.py": COPY + COUNTS})
    assert server.load(name).status == 200
    assert starts(server, name) == "12"
    assert server.states(name) == {"1": "READY", "2": "READY"}


@pytest.fixture
def traffic(server: LiveServer) -> Iterator[Any]:
    """`traffic(name)` asks a model all the time; what it answered is known at the end."""
    stop = Event()
    with ThreadPoolExecutor(2) as pool:

        def ask(name: str) -> list[Any]:
            answers = []
            while not stop.is_set():
                reply = server.infer(name, [0])
                answers.append(reply.json["outputs"][0]["data"] if reply.status == 200 else reply.body)
            return answers

        def begin(name: str) -> Any:
            future = pool.submit(ask, name)

            def end() -> list[Any]:
                stop.set()
                return future.result(30)

            return end

        yield begin
        stop.set()


def test_a_replaced_version_answers_until_the_new_one_does(server: LiveServer, name: str, tmp_path: Path, traffic: Any) -> None:
    server.add(name, values(1))
    server.load(name)
    end = traffic(name)
    slow = VALUE.format(value=2) + held(tmp_path, initialize="go").split("class TritonPythonModel:")[1].split("def execute")[0]
    source = held(tmp_path, initialize="go").split("class TritonPythonModel:")[0] + slow
    server.add(name, {"2/model.py": source})
    with running(lambda: server.load(name), tmp_path / "go"):
        assert server.output(name) == [1]
    assert server.output(name) == [2]
    answers = end()
    assert [1] in answers
    assert all(answer in ([1], [2]) for answer in answers), answers
    assert answers == sorted(answers)


def test_one_version_can_be_unloaded(server: LiveServer, name: str) -> None:
    server.add(name, values(1, 2, 3, more=ALL))
    server.load(name)
    assert server.unload(name, {"versions": "2"}).status == 200
    assert server.states(name) == {"1": "READY", "2": "UNAVAILABLE", "3": "READY"}
    assert server.infer(name, [0], version="2").status == 503
    assert [server.output(name, version=version) for version in ("1", "3", "")] == [[1], [3], [3]]


def test_the_index_lists_what_was_never_loaded_and_can_leave_it_out(server: LiveServer, name: str) -> None:
    server.add(name, copy())
    assert server.index(name) == [{"name": name}]
    ready = server.post("/v2/repository/index", {"ready": True}).json
    assert {"name": "ident", "version": "1", "state": "READY"} in ready
    assert {entry.get("state") for entry in ready} == {"READY"}
    for method in ("GET", "PUT", "DELETE"):
        assert server.ask(method, "/v2/repository/index").status == 405
