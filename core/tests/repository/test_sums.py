"""Versions that carry a list of their files' check sums."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest
from attrs import evolve

from moorage._plugins import Registry
from moorage._repository import Repositories
from moorage._repository.sums import parse
from moorage.control import ModelId
from moorage.errors import NotFound
from moorage.storage import Entry, Progress, Storage, unseen

Write = Callable[[Mapping[str, str]], Path]
Make = Callable[..., Repositories]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def listed(files: Mapping[str, str]) -> str:
    return "".join(f"{digest(content)}  {path}\n" for path, content in files.items())


def doubt(repositories: Repositories, version: int = 1) -> str:
    return repositories.doubt(repositories.scan(), ModelId("m"), version)


def test_a_version_whose_files_all_match_is_whole(write: Write, repositories: Make) -> None:
    files = {"model.onnx": "model", "deep/model data.bin": "data"}
    write({"r/m/1/SHA256SUMS": listed(files), **{f"r/m/1/{path}": content for path, content in files.items()}})
    assert doubt(repositories()) == ""


@pytest.mark.parametrize(
    "files,why",
    [
        ({}, "lists 'model.onnx', which is not there (2 files are missing)"),
        ({"model.onnx": "model"}, "lists 'data', which is not there"),
        ({"model.onnx": "mod", "data": "data"}, "'model.onnx' does not match its sum"),
    ],
)
def test_a_version_that_is_not_whole(write: Write, repositories: Make, files: Mapping[str, str], why: str) -> None:
    sums = listed({"model.onnx": "model", "data": "data"})
    write({"r/m/1/SHA256SUMS": sums, **{f"r/m/1/{path}": content for path, content in files.items()}})
    assert why in doubt(repositories())


@pytest.mark.parametrize("sums,why", [("nonsense\n", "line 1"), ("", "no file"), (f"{'0' * 63}  model", "line 1")])
def test_a_list_that_is_none(write: Write, repositories: Make, sums: str, why: str) -> None:
    write({"r/m/1/SHA256SUMS": sums, "r/m/1/model": ""})
    assert why in doubt(repositories())


def test_a_path_outside_of_the_version_never_matches(write: Write, repositories: Make) -> None:
    write({"r/m/1/SHA256SUMS": listed({"../2/model": "two"}), "r/m/1/model": "", "r/m/2/model": "two"})
    assert "not there" in doubt(repositories())


def test_a_version_that_is_nowhere(write: Write, repositories: Make) -> None:
    write({"r/other/1/model": ""})
    with pytest.raises(NotFound):
        doubt(repositories())


def test_the_format_is_that_of_sha256sum() -> None:
    mark = digest("x").upper()
    text = f"{mark}  a b\r\n\n{mark} *./c\n\\{mark}  new\\nline\\\\\n{mark}  end"
    assert list(parse(text)) == ["a b", "c", "new\nline\\", "end"]
    assert set(parse(text).values()) == {mark.lower()}


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="needs sha256sum")
def test_what_sha256sum_writes_is_understood(write: Write, repositories: Make) -> None:
    folder = write({"r/m/1/model.onnx": "model", "r/m/1/odd\nname": "data"}) / "r/m/1"
    made = subprocess.run(["sha256sum", "model.onnx", "odd\nname"], cwd=folder, capture_output=True, text=True, check=True)
    write({"r/m/1/SHA256SUMS": made.stdout})
    assert doubt(repositories()) == ""


class FarStorage(Storage):
    """A storage whose files have to be brought here."""

    schemes: ClassVar[Sequence[str]] = ("far",)
    files: ClassVar[dict[str, str]] = {"m/1/model": "model", "m/1/SHA256SUMS": listed({"model": "model"})}

    def list(self, url: str) -> tuple[Entry, ...]:
        return tuple(Entry(path, len(content), content) for path, content in self.files.items())

    def read(self, url: str, path: str) -> bytes:
        return self.files[path].encode()

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        for path in (entry.path for entry in entries):
            copy = target / path
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(self.files[path])


def test_files_elsewhere_are_fetched_to_be_checked(registry: Registry) -> None:
    far = Repositories(["far://away"], evolve(registry, storages={"far": FarStorage}))
    assert doubt(far) == ""
    FarStorage.files["m/1/model"] = "mode"
    assert "does not match" in doubt(far)
