"""Loads and unloads over HTTP and gRPC, with the official client where it can say what is meant."""

from __future__ import annotations

import base64
from pathlib import Path
from urllib.parse import quote

import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

from inputs.models import VALUE, copy, io
from inputs.repository import model
from management.conftest import Serve

JSON_CONFIG = (
    '{"backend": "python", "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1]}],'
    ' "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1]}]}'
)
MODEL_FILE = VALUE.format(value=7.0).encode()
OVERRIDE = {"config": JSON_CONFIG, "file:2/model.py": base64.b64encode(MODEL_FILE).decode()}


def test_files_in_a_request_need_the_flag(serve: Serve) -> None:
    server = serve(model("m", copy()), "--load-model=m")
    refusal = server.load("m", OVERRIDE)
    assert refusal.status == 403
    assert "--allow-model-override" in refusal.error
    assert "--allow-model-override" in server.load("ghost", OVERRIDE).error
    with (
        triton.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client,
        pytest.raises(InferenceServerException, match="--allow-model-override"),
    ):
        client.load_model("m", config=JSON_CONFIG, files={"file:2/model.py": MODEL_FILE})
    assert server.output("m", [3.0]) == [3.0]
    assert server.index() == [{"name": "m", "version": "1", "state": "READY"}]


def test_files_in_a_request(serve: Serve) -> None:
    server = serve(model("m", copy()), "--load-model=m", "--allow-model-override=true")
    assert server.load("m", OVERRIDE).status == 200
    assert server.output("m") == [7.0]
    assert server.load("m").status == 200
    assert server.output("m", [3.0]) == [3.0]
    with triton.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        client.load_model("ghost", config=JSON_CONFIG, files={"file:4/model.py": MODEL_FILE})
    assert server.states("ghost") == {"4": "READY"}
    assert server.output("ghost") == [7.0]
    assert server.unload("ghost").status == 200
    assert server.index("ghost") == []


@pytest.mark.parametrize("path", ["../../x", "/abs", "1/../../x", "", "1//a", "1/.", "a\\..\\b"])
def test_files_that_would_leave_the_models_folder(serve: Serve, tmp_path: Path, path: str) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    server = serve({}, "--allow-model-override=true", environment={"TMPDIR": str(temporary)})
    before = sorted(tmp_path.rglob("*"))
    reply = server.load("m", {"config": JSON_CONFIG, f"file:{path}": base64.b64encode(b"x").decode()})
    assert reply.status == 400
    assert sorted(tmp_path.rglob("*")) == before


def test_single_versions(serve: Serve) -> None:
    files = {f"{version}/model.py": VALUE.format(value=float(version)) for version in (1, 2, 3)}
    server = serve(model("m", {"config.pbtxt": f'backend: "python"\nversion_policy {{ all {{ }} }}\n{io()}', **files}))
    assert server.load("m").status == 200
    assert server.unload("m", {"versions": "2"}).status == 200
    assert server.index("m") == [
        {"name": "m", "version": "1", "state": "READY"},
        {"name": "m", "version": "2", "state": "UNAVAILABLE", "reason": "unloaded"},
        {"name": "m", "version": "3", "state": "READY"},
    ]
    assert server.infer("m", [0.0], version="2").status == 503
    assert server.output("m") == [3.0]
    assert server.load("m", {"versions": "2"}).status == 200
    assert server.output("m", version="2") == [2.0]
    assert server.load("m", {"versions": "9"}).status == 404
    with triton.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        client.unload_model("m")
    assert server.states("m") == dict.fromkeys("123", "UNAVAILABLE")


def test_a_namespace_in_a_url(serve: Serve, tmp_path: Path) -> None:
    for name, value in (("north", 1.0), ("south", 2.0)):
        folder = tmp_path / name / "m" / "1"
        folder.mkdir(parents=True)
        (folder.parent / "config.pbtxt").write_text(f'backend: "python"\n{io()}')
        (folder / "model.py").write_text(VALUE.format(value=value))
    repositories = [f"--model-repository={tmp_path / name}" for name in ("north", "south")]
    server = serve({}, *repositories, "--model-namespacing=true")
    names = [entry["name"] for entry in server.index()]
    assert names == [f"{tmp_path / name}::m" for name in ("north", "south")]
    for name, value in zip(names, (1.0, 2.0), strict=True):
        segment = quote(name, safe="")
        assert server.load(segment).status == 200
        assert server.get(f"/v2/models/{segment}/ready").status == 200
        assert server.output(segment) == [value]
    assert server.get("/v2/models/m/ready").status == 400
    assert server.unload(quote(names[0], safe="")).status == 200
    assert server.output("m") == [2.0]
