"""From a model in a repository to what is to be loaded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from attrs import evolve

from moorage._plugins import Registry
from moorage._repository import ModelSpec, Repositories, check_name
from moorage.control import LoadOptions, ModelId
from moorage.errors import ConfigError, InvalidArgument, MoorageError, NotFound, RequestError, StorageError

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]
IO = 'input { name: "X" data_type: TYPE_INT32 dims: 1 } output { name: "Y" data_type: TYPE_INT32 dims: 1 }'
PYTHON = f'backend: "python" {IO}'
ENSEMBLE = """
platform: "ensemble"
input { name: "A" data_type: TYPE_INT32 dims: 1 }
output { name: "B" data_type: TYPE_INT32 dims: 1 }
ensemble_scheduling { step { model_name: "STEP" model_version: -1
  input_map { key: "X" value: "A" } output_map { key: "Y" value: "B" } } }
"""


def spec(repositories: Repositories, name: str = "m", options: LoadOptions | None = None) -> ModelSpec:
    return repositories.spec(repositories.scan(), ModelId(name), options)


def refusal(repositories: Repositories, name: str = "m", options: LoadOptions | None = None) -> str:
    with pytest.raises(InvalidArgument) as caught:
        spec(repositories, name, options)
    return str(caught.value)


def test_versions_with_their_files(write: Write, repositories: Make, tmp_path: Path) -> None:
    config = f"{PYTHON} version_policy {{ all {{ }} }}"
    write({"r/m/config.pbtxt": config, "r/m/1/model.py": "", "r/m/1/sub/w": "", "r/m/1/.x": "", "r/m/20/model.py": ""})
    found = spec(repositories())
    assert sorted(found.versions) == [1, 20]
    version = found.versions[1]
    assert version.files.names == {"model.py", "sub/w"}
    assert version.files.path == tmp_path / "r/m/1"
    assert version.files.model_path == tmp_path / "r/m"
    assert (version.files.model_name, version.files.version) == ("m", 1)
    assert (version.repository, version.folder) == (str(tmp_path / "r"), "m")
    config_seen = version.parsed.config
    assert (config_seen.name, config_seen.backend, config_seen.default_model_filename) == ("m", "python", "model.py")
    assert version.storage.read(version.repository, f"{version.folder}/1/model.py") == b""


def test_no_configuration_and_an_empty_one_are_the_same(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.onnx": "", "r/n/1/model.onnx": "", "r/n/config.pbtxt": ""})
    for name in "mn":
        config = spec(repositories(), name).versions[1].parsed.config
        assert (config.name, config.backend, config.platform) == (name, "onnxruntime", "onnxruntime_onnx")


def test_a_configuration_that_leaves_much_open(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": 'max_batch_size: 8 input { name: "X" }', "r/m/1/model.onnx": ""})
    parsed = spec(repositories()).versions[1].parsed
    assert parsed.config.max_batch_size == 8
    assert parsed.given == {"max_batch_size", "input"}


def test_without_completion_nothing_may_be_open(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": 'backend: "python" input { name: "X" }', "r/m/1/model.py": "", "r/n/1/model.py": ""})
    write({"r/bare/config.pbtxt": 'backend: "python"', "r/bare/1/model.py": ""})
    strict = repositories(auto_complete=False)
    assert spec(strict).versions, "faults of tensors alone show at the load of each version"
    assert "--disable-auto-complete-config" in refusal(strict, "n")
    assert spec(strict, "bare").versions


def test_all_faults_are_told_with_model_file_and_line(write: Write, repositories: Make, tmp_path: Path) -> None:
    write(
        {"r/m/config.pbtxt": f'backend: "python"\nmax_batch_size: -1\n{IO.replace("dims: 1", "dims: 0")}', "r/m/1/model.py": ""}
    )
    with pytest.raises(ConfigError) as caught:
        spec(repositories())
    assert {fault.line for fault in caught.value.faults} == {2, 3}
    assert len(caught.value.faults) == 3
    assert str(caught.value).startswith(f"model 'm': {tmp_path}/r/m/config.pbtxt:2:")


@pytest.mark.parametrize("name, ok", [("m", True), ("beta", False)])
def test_a_name_must_be_the_folders(write: Write, repositories: Make, name: str, ok: bool) -> None:
    write({"r/m/config.pbtxt": f'{PYTHON}\nname: "{name}"', "r/m/1/model.py": ""})
    if ok:
        assert spec(repositories()).versions[1].parsed.config.name == "m"
    else:
        message = refusal(repositories())
        assert "'beta'" in message
        assert "'m'" in message
        assert "config.pbtxt:2" in message


def test_a_configuration_that_is_not_text(write: Write, repositories: Make) -> None:
    root = write({"r/m/1/model.py": ""})
    (root / "r/m/config.pbtxt").write_bytes(b'backend: "python"\n# caf\xe9')
    message = refusal(repositories())
    assert "config.pbtxt:2" in message
    assert "byte 0xe9 is not UTF-8" in message
    (root / "r/m/config.pbtxt").write_bytes(b'\xef\xbb\xbfbackend: "python"')
    assert spec(repositories()).versions[1].parsed.config.backend == "python"


def test_json_on_disk(write: Write, repositories: Make) -> None:
    config = '{"max_batch_size":4,"input":[{"name":"X","data_type":"TYPE_FP32","dims":[-1]}]}'
    write({"r/m/config.json": config, "r/m/1/model.py": ""})
    assert spec(repositories()).versions[1].parsed.config.input[0].dims == (-1,)
    write({"r/m/config.pbtxt": PYTHON})
    assert "both config.pbtxt and config.json" in refusal(repositories())


def test_a_configuration_by_another_name(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": f"max_batch_size: 4 {PYTHON}", "r/m/1/model.py": ""})
    write({"r/m/configs/big.pbtxt": f"max_batch_size: 32 {PYTHON}", "r/m/configs/json.json": '{"max_batch_size": 8}'})
    sizes = {
        name: spec(repositories(config_name=name)).versions[1].parsed.config.max_batch_size
        for name in ("", "big", "json", "none_such")
    }
    assert sizes == {"": 4, "big": 32, "json": 8, "none_such": 4}


def test_no_usable_version_says_what_was_skipped(write: Write, repositories: Make, tmp_path: Path) -> None:
    write({"r/m/config.pbtxt": PYTHON, "r/m/01/model.py": "", "r/m/v2/model.py": ""})
    message = refusal(repositories())
    assert "'01' was skipped, it starts with a zero" in message
    assert "'v2' was skipped, it is not a whole number" in message
    assert f"{tmp_path}/r/m/1" in message


def test_a_policy_that_picks_nothing_says_what_there_is(write: Write, repositories: Make) -> None:
    config = f"version_policy {{ specific {{ versions: [7, 8] }} }}\n{PYTHON}"
    write({"r/m/config.pbtxt": config, "r/m/1/model.py": "", "r/m/2/model.py": ""})
    message = refusal(repositories())
    assert "picks none of the versions" in message
    assert "(1, 2); it names 7, 8" in message


def test_fingerprints_of_versions(write: Write, repositories: Make) -> None:
    config = f"{PYTHON} version_policy {{ all {{ }} }}"
    root = write({"r/m/config.pbtxt": config, "r/m/1/model.py": ""})
    first = spec(repositories()).versions[1].fingerprint
    write({"r/m/2/model.py": "", "r/m/1/__pycache__/model.pyc": "x"})
    (root / "r/m/config.pbtxt").touch()
    second = spec(repositories()).versions
    assert second[1].fingerprint == first != second[2].fingerprint
    write({"r/m/config.pbtxt": f"{config} "})
    assert spec(repositories()).versions[1].fingerprint != first


def test_ensembles_depend_on_their_steps(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": ENSEMBLE.replace("STEP", "other"), "r/m/1/": ""})
    found = spec(repositories())
    assert found.dependencies == {"other"}
    assert found.versions[1].parsed.config.platform == "ensemble"
    write({"r/p/config.pbtxt": PYTHON, "r/p/1/model.py": ""})
    assert spec(repositories(), "p").dependencies == frozenset()


def test_an_ensemble_needs_no_version_folder(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": ENSEMBLE, "r/n/config.pbtxt": f"{ENSEMBLE} version_policy {{ specific {{ versions: 2 }} }}"})
    found = spec(repositories())
    assert list(found.versions) == [1]
    assert found.versions[1].files.names == frozenset()
    assert list(spec(repositories(), options=LoadOptions(versions=frozenset({1}))).versions) == [1]
    assert "r/n" in refusal(repositories(), "n")
    write({"r/m/3/": "", "r/p/config.pbtxt": PYTHON})
    assert list(spec(repositories()).versions) == [3]
    assert "no version folder" in refusal(repositories(), "p")


@pytest.mark.parametrize("platform", ["onnxruntime_onnx", "mine_net"])
def test_a_platform_of_another_backend(write: Write, registry: Registry, tmp_path: Path, platform: str) -> None:
    write({"r/m/config.pbtxt": f'platform: "{platform}" {PYTHON}', "r/m/1/model.py": ""})
    more = evolve(registry, platforms={**registry.platforms, "mine_net": "mybackend"})
    message = refusal(Repositories([str(tmp_path / "r")], more))
    assert platform in message
    assert "'python'" in message


def test_a_step_cannot_leave_the_repository(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": ENSEMBLE.replace("STEP", "../secret"), "r/m/1/": ""})
    before = refusal(repositories())
    write({"secret/config.pbtxt": PYTHON})
    assert refusal(repositories()) == before
    assert "'../secret'" in before


def test_problems_of_the_scan_are_raised(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": "", "s/m/1/model.py": "", "r/notes/x": ""})
    assert "more than one repository" in refusal(repositories("r", "s"))
    assert "neither a configuration nor a version folder" in refusal(repositories(), "notes")


def test_unknown_models(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": ""})
    with pytest.raises(NotFound, match="model 'other' is in no repository"):
        spec(repositories(), "other")
    with pytest.raises(StorageError, match=r"could be read: model repository .*gone does not exist"):
        spec(repositories("r", "gone"), "other")
    with pytest.raises(NotFound, match="there are none"):
        Repositories([], repositories()._registry).spec(repositories().scan(), ModelId("x"))


BAD_NAMES = ["", " ", ".", "..", "../x", "a/../../x", "/etc", "a\\b", "..\\x", "a\0b", "x" * 300, "é" * 128]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_are_no_folder(write: Write, repositories: Make, name: str) -> None:
    write({"x/config.pbtxt": PYTHON, "r/m/1/model.py": ""})
    with pytest.raises(RequestError, match="cannot be the name of a model"):
        spec(repositories(), name)
    with pytest.raises(RequestError):
        spec(repositories(), name, LoadOptions(config="{}", files={"1/model.py": b""}))


@pytest.mark.parametrize("name", ["m", "My-Model.v2_1", "...", "a..b", "模型", "x" * 255, "a b"])
def test_names_that_are_fine(name: str) -> None:
    check_name(name)


def test_a_file_that_goes_away_is_a_storage_error(write: Write, repositories: Make) -> None:
    root = write({"r/m/config.pbtxt": PYTHON, "r/m/1/model.py": ""})
    made = repositories()
    snapshot = made.scan()
    (root / "r/m/config.pbtxt").unlink()
    with pytest.raises(MoorageError, match=r"cannot read .*config.pbtxt"):
        made.spec(snapshot, ModelId("m"))
