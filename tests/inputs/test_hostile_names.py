"""Names, paths and keys that try to leave the repository: nothing outside is read, written or told."""

from __future__ import annotations

import base64
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import tritonclient.grpc
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tritonclient.utils import InferenceServerException

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import COPY, config, copy, json_config
from inputs.repository import model, write

CANARY = "import pathlib\npathlib.Path({mark!r}).touch()\n" + COPY
ROUTES = [
    ("GET", "/v2/models/{}"), ("GET", "/v2/models/{}/config"), ("GET", "/v2/models/{}/ready"), ("GET", "/v2/models/{}/stats"),
    ("GET", "/v2/models/{}/versions/1"), ("GET", "/v2/models/{}/versions/1/config"), ("POST", "/v2/models/{}/infer"),
    ("POST", "/v2/models/{}/versions/1/infer"), ("POST", "/v2/repository/models/{}/load"),
    ("POST", "/v2/repository/models/{}/unload"),
]  # fmt: skip
NAMES = [
    "..", "../x", "../outside", "a/../../outside", "%2e%2e%2foutside", "%2e%2e%2f%2e%2e", "..%5coutside", "a\\b", ".", "",
    "   ", "a\0b", "n" * 300, "/etc", "%c0%ae%c0%ae%2foutside", "....//outside", "good/../../outside",
    "\n", "good\r\nx: y", "é" * 128,
]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository in it, and a model beside that nobody may touch."""
    folder = tmp_path_factory.mktemp("place")
    outside = {"config.pbtxt": config(), "1/model.py": CANARY.format(mark=str(folder / "loaded"))}
    write(folder, model("outside", outside))
    write(folder / "repository", model("good", copy()))
    return folder


@pytest.fixture(scope="module")
def server(shared: Serve, place: Path) -> LiveServer:
    flags = ["--model-control-mode=explicit", "--load-model=good", "--allow-model-override=true"]
    return shared(None, f"--model-repository={place / 'repository'}", *flags)


@pytest.fixture(autouse=True)
def _nothing_happened(server: LiveServer, place: Path) -> Iterator[None]:
    before = _listing(place)
    yield
    assert _listing(place) == before
    assert server.output("good", [1]) == [1]


def _listing(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if "__pycache__" not in path.parts)


def raw_request(server: LiveServer, method: str, path: bytes) -> int:
    """The status of a request whose path is sent as it is, however odd."""
    with socket.create_connection(("127.0.0.1", server.ports[0]), timeout=10) as connection:
        head = b"%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}" % (method.encode(), path)
        connection.sendall(head)
        answer = connection.makefile("rb").readline()
    return int(answer.split()[1])


@pytest.mark.parametrize("method, route", ROUTES)
def test_names_in_urls(server: LiveServer, method: str, route: str) -> None:
    for name in NAMES:
        for spelt in {name.encode(), quote(name, safe="%").encode()}:
            if b"\r" in spelt or b"\n" in spelt or b" " in spelt or b"\0" in spelt:
                continue  # that is another request, not another name
            status = raw_request(server, method, route.encode().replace(b"{}", spelt))
            assert status in (400, 404, 405), (spelt, status)


@pytest.mark.parametrize("method, route", [one for one in ROUTES if not one[1].endswith(("/unload", "/ready", "/stats"))])
def test_a_name_that_is_encoded_twice_is_decoded_once(server: LiveServer, method: str, route: str) -> None:
    assert raw_request(server, method, route.encode().replace(b"{}", b"%252e%252e%252foutside")) in (400, 404)


PIECES = st.lists(st.sampled_from(["..", ".", "/", "\\", "%2e", "%2f", "%5c", "%00", "outside", "good", " ", "%20", "::", "é"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(PIECES.map("".join), st.sampled_from(ROUTES))
def test_names_put_together_from_hostile_pieces(server: LiveServer, name: str, route: tuple[str, str]) -> None:
    if name.endswith("good") and "/" not in name and "\\" not in name:
        return
    status = raw_request(server, route[0], route[1].encode().replace(b"{}", quote(name, safe="%/\\").encode()))
    assert status in (200, 400, 404, 405)
    assert not [entry for entry in server.index() if entry["name"] != "good"]


@pytest.mark.parametrize("name", [name for name in NAMES if "%" not in name])
def test_names_over_grpc(server: LiveServer, name: str) -> None:
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        for call in (client.load_model, client.get_model_metadata, client.get_model_config):
            with pytest.raises(InferenceServerException) as caught:
                call(name)
            assert caught.value.status() in ("StatusCode.INVALID_ARGUMENT", "StatusCode.NOT_FOUND"), name
        assert not client.is_model_ready(name) if name else True


ENSEMBLE = """platform: "ensemble"
input { name: "X" data_type: TYPE_FP32 dims: -1 } output { name: "Y" data_type: TYPE_FP32 dims: -1 }
ensemble_scheduling { step { model_name: "STEP" model_version: -1
  input_map { key: "X" value: "X" } output_map { key: "Y" value: "Y" } } }"""


def test_a_step_of_an_ensemble_outside_the_repository(serve: Serve, place: Path) -> None:
    steps = ["../outside", "../nowhere", "..", ".", "/etc", "a\\\\b", str(place / "outside")]
    files: dict[str, str | bytes] = {}
    for at, step in enumerate(steps):
        files |= model(f"e{at}", {"config.pbtxt": ENSEMBLE.replace("STEP", step), "1/": ""})
    server = serve(files, "--exit-on-error=false")
    reasons = [server.reason(f"e{at}") for at in range(len(steps))]
    assert all("step[0].model_name" in reason for reason in reasons)
    there, not_there = (reason.replace("e0", "e").replace("e1", "e") for reason in reasons[:2])
    assert there.replace("outside", "nowhere") == not_there


WAYS_OUT = ["../../outside/1/model.py", "../1/../../outside/1/model.py", "..\\\\x", "{outside}/1/model.py", "a/..", ".."]
FIELDS = {
    "default_model_filename": 'default_model_filename: "OUT"',
    'cc_model_filenames["7.5"]': 'cc_model_filenames { key: "7.5" value: "OUT" }',
    "output[1].label_filename": 'output { name: "Z" data_type: TYPE_FP32 dims: 1 label_filename: "OUT" }',
    'model_warmup[0].inputs["X"].input_data_file': """model_warmup { batch_size: 1
        inputs { key: "X" value { data_type: TYPE_FP32 dims: 1 input_data_file: "OUT" } } }""",
    "sequence_batching.state[0].initial_state[0].data_file": """sequence_batching { state { input_name: "A" output_name: "B"
        data_type: TYPE_FP32 dims: 1 initial_state { name: "s" data_type: TYPE_FP32 dims: 1 data_file: "OUT" } } }""",
}


@pytest.mark.parametrize("field", FIELDS)
def test_files_of_a_configuration_stay_in_the_folder(serve: Serve, place: Path, field: str) -> None:
    files: dict[str, str | bytes] = {}
    ways = [way.replace("{outside}", str(place / "outside")) for way in WAYS_OUT]
    for at, way in enumerate(ways):
        files |= model(f"m{at}", {**copy(), "config.pbtxt": config(more=FIELDS[field].replace("OUT", way))})
    server = serve(files, "--exit-on-error=false")
    for at in range(len(ways)):
        (entry,) = server.index(f"m{at}")
        assert f": {field}: " in entry["reason"]
        assert "leads out of the model's folder" in entry["reason"]


def test_a_configuration_of_a_load_cannot_name_a_file_outside(server: LiveServer) -> None:
    reply = server.load("good", {"config": json_config(default_model_filename="../../outside/1/model.py")})
    assert reply.status == 400
    assert "leads out of the model's folder" in reply.error


KEYS = [
    "file:../../x", "file:../x", "file:/abs", "file:1/../../x", "file:", "file:.", "file:1/..", "file:1\\x", "file:1//x",
    "file:1/", "file:/", "file:1/\0", "file:" + "a/" * 2000 + "x", "file:" + "n" * 300,
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_files_of_a_load_stay_in_their_folder(server: LiveServer, key: str) -> None:
    reply = load_with(server, {"file:1/model.py": encoded(COPY), key: encoded("x")})
    assert reply.status == 400
    assert "file:" in reply.error


def test_a_file_cannot_be_a_folder(server: LiveServer) -> None:
    for keys in (
        ["file:1/a", "file:1/a/b"],
        ["file:1/a/b", "file:1/a"],
        ["file:config.pbtxt/x"],
        ["file:1", "file:1/model.py"],
    ):
        reply = load_with(server, dict.fromkeys(keys, encoded("x")))
        assert reply.status == 400, keys


@pytest.mark.parametrize("value", ["!", "a b", "abc", "====", "é", 5, None, True, {}, ["YQ=="]])
def test_files_of_a_load_are_base64(server: LiveServer, value: object) -> None:
    reply = load_with(server, {"file:1/model.py": value})
    assert reply.status == 400
    assert "file:1/model.py" in reply.error


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def load_with(server: LiveServer, files: dict[str, Any]) -> Any:
    return server.load("sent", {"config": json_config(), **files})
