"""What a server makes of the folders that it finds, from the start to the index."""

from __future__ import annotations

from pathlib import Path

import pytest

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import COPY, VALUE, config, copy, onnx_copy
from inputs.repository import model, write

ALL = "version_policy: { all { }}"
BOTH = {"config.pbtxt": config(), **{f"{version}/model.py": VALUE.format(value=version) for version in (1, 2)}}


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    trees = {
        **model("good", copy()),
        **model("zero", copy(version="01")),
        **model("latest", {**BOTH, "01/model.py": "raise SystemError"}),
        **model("all", {**BOTH, "config.pbtxt": config(more=ALL), "01/model.py": "raise SystemError"}),
        **model("numbers", {"config.pbtxt": config(), **{f"{n}/model.py": VALUE.format(value=n) for n in (9, 10)}}),
        **model("guessed", {"1/model.onnx": onnx_copy(), ".ipynb_checkpoints/model.py": COPY, "configs/gpu.pbtxt": "",
                            "warmup/": "", "initial_state/": ""}),
        **model("demo.mybackend", {"1/x.bin": "x"}),
        **model("demo", {"1/x.bin": "x"}),
        "README.md": "how to", "notes/": "", "data/x.csv": "", "deep/b/c/": "",
        ".git/config": "", ".ipynb_checkpoints/1/model.py": "", "lost+found/": "",
        "__MACOSX/1/model.py": "", "@eaDir/x": "", "#recycle/x": "", "$RECYCLE.BIN/x": "", "System Volume Information/x": "",
        "Thumbs.db": "", ".DS_Store": "", "__pycache__/x.pyc": "", "..data/m/1/model.py": "", "config.pbtxt": "stray",
    }  # fmt: skip
    return shared(trees, "--exit-on-error=false", "--strict-readiness=false")


def test_a_version_folder_with_a_leading_zero_is_told(server: LiveServer) -> None:
    assert "'01' was skipped, it starts with a zero" in server.reason("zero")
    assert server.infer("zero", [1]).status == 404
    assert server.output("good", [1, 2]) == [1, 2]


def test_the_greatest_version_is_served_alone_unless_the_policy_says_otherwise(server: LiveServer) -> None:
    assert server.get("/v2/models/latest").json["versions"] == ["2"]
    assert server.output("latest") == [2]
    assert server.get("/v2/models/all").json["versions"] == ["1", "2"]
    assert [server.output("all", version=version) for version in ("1", "2", "")] == [[1], [2], [2]]
    assert server.output("numbers") == [10]


def test_a_skipped_version_folder_is_told_for_a_model_that_serves(server: LiveServer) -> None:
    for name in ("latest", "all"):
        assert f"model '{name}': the folder '01' was skipped as a version, it starts with a zero" in server.log


def test_stray_files_and_folders_stop_nothing(server: LiveServer) -> None:
    assert server.get("/v2/health/ready").status == 200
    assert server.states("good") == {"1": "READY"}
    for name in ("notes", "data", "deep"):
        assert "neither a configuration nor a version folder" in server.reason(name)
    names = {entry["name"] for entry in server.index()}
    assert names == {"all", "data", "deep", "demo", "demo.mybackend", "good", "guessed", "latest", "notes", "numbers", "zero"}


def test_folders_of_tools_do_not_decide_the_backend(server: LiveServer) -> None:
    assert server.get("/v2/models/guessed/config").json["backend"] == "onnxruntime"
    assert server.states("guessed") == {"1": "READY"}


def test_the_end_of_a_name_may_be_the_backend(server: LiveServer) -> None:
    (entry,) = server.index("demo.mybackend")
    assert "mybackend" in entry["reason"]
    assert "no backend" in entry["reason"]
    assert "set 'backend' and 'default_model_filename' in config.pbtxt" in server.reason("demo")


def test_the_folder_of_a_model_given_for_a_repository(serve: Serve, tmp_path: Path) -> None:
    write(tmp_path / "m", copy())
    with pytest.raises(RuntimeError, match=r"looks like the folder of one model .* give the folder above it"):
        serve(None, f"--model-repository={tmp_path / 'm'}")


def test_a_model_that_is_added_later_can_be_loaded(serve: Serve) -> None:
    server = serve(None, "--model-control-mode=explicit")
    assert server.index() == []
    server.add("new1", copy())
    assert server.index() == [{"name": "new1"}]
    assert server.load("new1").status == 200
    assert server.output("new1", [4]) == [4]
    assert server.index() == [{"name": "new1", "version": "1", "state": "READY"}]


def test_a_name_in_two_repositories(serve: Serve, tmp_path: Path) -> None:
    a = write(tmp_path / "a", {**model("prep", copy()), **model("only_a", copy())})
    b = write(tmp_path / "b", {**model("prep", copy()), **model("only_b", copy())})
    server = serve(None, f"--model-repository={a}", f"--model-repository={b}")
    assert f"{a} and {b}" in server.reason("prep")
    assert server.infer("prep", [1]).status == 404
    assert [server.output(name, [1]) for name in ("only_a", "only_b")] == [[1], [1]]


def test_a_name_in_two_repositories_with_namespacing(serve: Serve, tmp_path: Path) -> None:
    a = write(tmp_path / "a", model("prep", {"config.pbtxt": config(), "1/model.py": VALUE.format(value=1)}))
    b = write(tmp_path / "b", model("prep", {"config.pbtxt": config(), "1/model.py": VALUE.format(value=2)}))
    server = serve(None, f"--model-repository={a}", f"--model-repository={b}", "--model-namespacing=true")
    refused = server.infer("prep", [1])
    assert refused.status == 400
    assert f"'{a}', '{b}'" in refused.error
    assert f"ask for '{b}::prep', for instance" in refused.error
    for place, value in ((a, 1), (b, 2)):
        name = f"{place}::prep".replace("/", "%2F")
        assert server.output(name) == [value]
