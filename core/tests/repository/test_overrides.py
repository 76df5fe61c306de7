"""Loads that bring a configuration or files of their own."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from moorage._repository import ModelSpec, Repositories
from moorage.control import LoadOptions, ModelId
from moorage.errors import ConfigError, NotFound, RequestError

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]
ALL = '{"backend": "python", "version_policy": {"all": {}}}'


def load(repositories: Repositories, options: LoadOptions | None, name: str = "m") -> ModelSpec:
    return repositories.spec(repositories.scan(), ModelId(name), options)


def test_a_config_replaces_the_file_for_that_load_only(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": 'backend: "python" max_batch_size: 2', "r/m/1/model.py": "", "r/m/2/model.py": ""})
    made = repositories()
    given = load(made, LoadOptions(config=ALL))
    assert sorted(given.versions) == [1, 2]
    assert given.versions[1].parsed.config.max_batch_size == 0
    plain = load(made, None)
    assert sorted(plain.versions) == [2]
    assert plain.versions[2].fingerprint != given.versions[2].fingerprint
    assert load(made, LoadOptions(config=ALL)).versions[2].fingerprint == given.versions[2].fingerprint


def test_a_config_does_without_a_file_and_without_completion(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": ""})
    assert load(repositories(auto_complete=False), LoadOptions(config=ALL)).versions


@pytest.mark.parametrize(
    "config, word",
    [
        ('{"name": "other", "backend": "python"}', "other"),
        ('{"backend": "python", "max_batch_size": -3}', "max_batch_size"),
        ('{"backend": "python", "no_such_field": 1}', "no_such_field"),
        ("{not json", "double quotes"),
    ],
)
def test_a_bad_config_is_refused(write: Write, repositories: Make, config: str, word: str) -> None:
    write({"r/m/config.pbtxt": 'backend: "python"', "r/m/1/model.py": ""})
    with pytest.raises(ConfigError, match=word) as caught:
        load(repositories(), LoadOptions(config=config))
    assert str(caught.value).startswith("model 'm': parameter 'config'")


def test_files_make_a_model_of_their_own(write: Write, repositories: Make) -> None:
    write({"r/m/config.pbtxt": 'backend: "python"', "r/m/1/model.py": ""})
    made = repositories()
    options = LoadOptions(config=ALL, files={"9/model.py": b"nine", "9/sub/w": b"w", "labels.txt": b"l"})
    spec = load(made, options)
    assert sorted(spec.versions) == [9]
    version = spec.versions[9]
    assert version.files.names == {"model.py", "sub/w"}
    assert version.files.path is not None
    assert (version.files.path / "model.py").read_bytes() == b"nine"
    assert (version.files.path.parent / "labels.txt").read_bytes() == b"l"
    assert version.storage.read(version.repository, f"{version.folder}/9/sub/w") == b"w"
    assert load(made, options).versions[9].fingerprint == version.fingerprint
    assert sorted(load(made, None).versions) == [1]


def test_files_need_no_model_in_a_repository(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": ""})
    assert load(repositories(), LoadOptions(config=ALL, files={"1/model.py": b""}), "ghost").versions
    with pytest.raises(NotFound):
        load(repositories(), LoadOptions(config=ALL), "ghost")


def test_files_need_a_config(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": ""})
    with pytest.raises(RequestError, match=r"model 'm'.* needs the parameter 'config'"):
        load(repositories(), LoadOptions(files={"1/model.py": b""}))


def test_the_folder_goes_when_nothing_needs_it(write: Write, repositories: Make) -> None:
    write({"r/m/1/model.py": ""})
    spec = load(repositories(), LoadOptions(config=ALL, files={"1/model.py": b""}))
    path = Path(spec.versions[1].repository)
    version = spec.versions[1]
    del spec
    gc.collect()
    assert path.is_dir()
    del version
    gc.collect()
    assert not path.exists()


@pytest.mark.parametrize(
    "paths",
    [
        ["../../x"],
        ["/abs"],
        ["1/../../x"],
        ["1/a", "1/a/b"],
        ["1/a/b/c", "1/a"],
        [""],
        ["1//a"],
        ["1/."],
        ["1/"],
        ["a\\..\\b"],
        ["1/a\0"],
    ],
)
def test_paths_that_leave_the_folder(
    write: Write, repositories: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, paths: list[str]
) -> None:
    write({"r/m/1/model.py": "", "temporary/": ""})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with pytest.raises(RequestError, match="parameter 'file:"):
        load(repositories(), LoadOptions(config=ALL, files=dict.fromkeys(paths, b"")))
    assert list((tmp_path / "temporary").iterdir()) == []
