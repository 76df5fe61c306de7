"""What is added to the error of a failed load."""

from pathlib import Path

import pytest

from moorage._execution.load_faults import explained
from moorage.backend import VersionFiles
from moorage.config import parse_text
from moorage.config.parsed import ParsedConfig
from moorage.errors import ConfigError, Fault, ModelError, MoorageError, NotFound

CONFIG = """max_batch_size: 8
parameters {
  key: "a.b"
  value { string_value: "x" }
}
"""


@pytest.fixture
def parsed() -> ParsedConfig:
    return parse_text(CONFIG, file="config.pbtxt")


def version(folder: Path, **content: bytes) -> VersionFiles:
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return VersionFiles("m", frozenset(content), path=folder)


@pytest.mark.parametrize(
    "field, line", [("max_batch_size", 1), ("parameters.a.b", 4), ("parameters.other", 0), ("backend", 0), ("", 0)]
)
def test_a_fault_gets_the_place_of_its_field(parsed: ParsedConfig, tmp_path: Path, field: str, line: int) -> None:
    told = explained(ConfigError([Fault("wrong", field=field)], "m"), parsed, version(tmp_path))
    assert isinstance(told, ConfigError)
    (fault,) = told.faults
    assert (fault.line, fault.file) == (line, "config.pbtxt" if line else "")
    assert told.model == "m"


def test_a_fault_that_has_a_place_keeps_it(parsed: ParsedConfig, tmp_path: Path) -> None:
    error = ConfigError([Fault("wrong", file="labels.txt", line=7, field="max_batch_size")], "m")
    assert explained(error, parsed, version(tmp_path)) is error


@pytest.mark.parametrize(
    "content, what",
    [
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b"<HTML>", "web page"),
    ],
)
def test_files_that_are_none(parsed: ParsedConfig, tmp_path: Path, content: bytes, what: str) -> None:
    told = explained(ModelError("cannot load"), parsed, version(tmp_path, model=b"\x08", weights=content))
    assert type(told) is ModelError
    assert str(told).startswith("cannot load; weights is a")
    assert what in str(told)


@pytest.mark.parametrize("error", [ModelError("is a Git LFS pointer"), NotFound("no file")])
def test_what_is_said_already_is_not_said_again(parsed: ParsedConfig, tmp_path: Path, error: MoorageError) -> None:
    assert explained(error, parsed, version(tmp_path, model=b"version https://git-lfs.github.com")) is error


def test_sound_files_add_nothing(parsed: ParsedConfig, tmp_path: Path) -> None:
    error = ModelError("cannot load")
    assert explained(error, parsed, version(tmp_path, model=b"\x08\x01")) is error
    assert explained(error, parsed, VersionFiles("m", frozenset({"gone"}), path=tmp_path)) is error
