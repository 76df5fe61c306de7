"""Libraries of operators: found, tried in another process, loaded once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from moorage.backend import LoadContext
from moorage.config.schema import ModelConfig, ModelOperations
from moorage.errors import ConfigError
from moorage_torchscript.operators import OperatorLibraries, tried

COMPILER = shutil.which("cc") or shutil.which("gcc")


def context(folder: Path, *names: str) -> LoadContext:
    config = ModelConfig(name="m", model_operations=ModelOperations(op_library_filename=names))
    (folder / "1").mkdir(exist_ok=True)
    return LoadContext("m", 1, config, folder / "1", folder, "model.pt")


class Played:
    """PyTorch and the process that tries, which keep what they were given."""

    def __init__(self) -> None:
        self.loaded: list[str] = []
        self.trials: list[list[str]] = []
        self.problem = ""
        self.ops = self

    def load_library(self, path: str) -> None:
        assert Path(path).is_file()
        self.loaded.append(Path(path).read_text())

    def tried(self, paths: list[Path]) -> str:
        self.trials.append([path.read_text() for path in paths])
        return self.problem


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    made = Played()
    monkeypatch.setattr("moorage_torchscript.operators.tried", made.tried)
    return made


def test_a_library_is_tried_beside_the_others_and_loaded_once(tmp_path: Path, played: Played) -> None:
    libraries = OperatorLibraries()
    for name in ("first", "second"):
        (tmp_path / f"{name}.so").write_text(name)
    for _ in range(2):
        libraries.load_for(played, context(tmp_path, "first.so", "second.so"))
    assert played.loaded == ["first", "second"]
    assert played.trials == [["first"], ["first", "second"]]


def test_a_library_that_fails_its_trial_is_not_loaded(tmp_path: Path, played: Played) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "bad.so").write_text("bad")
    played.problem = "undefined symbol"
    with pytest.raises(
        ConfigError, match=r"model 'm': model_operations\.op_library_filename\[0\]: 'bad\.so' .*undefined symbol"
    ):
        OperatorLibraries().load_for(played, context(tmp_path, "bad.so"))
    assert not played.loaded


def test_a_library_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no library 'none\.so' \(put it into"):
        OperatorLibraries().load_for(torch, context(tmp_path, "none.so"))


@pytest.mark.heavy
@pytest.mark.skipif(COMPILER is None, reason="no C compiler is installed")
def test_a_library_that_ends_its_process_ends_no_other(tmp_path: Path) -> None:
    good = "int nothing;"
    bad = """
        #include <stdio.h>
        #include <stdlib.h>
        __attribute__((constructor)) void start(void) { fputs("  what():  twice the same\\n", stderr); abort(); }
    """
    libraries = []
    for name, source in (("good", good), ("bad", bad)):
        (tmp_path / f"{name}.c").write_text(source)
        command: list[Any] = [COMPILER, "-shared", "-fPIC", tmp_path / f"{name}.c", "-o", tmp_path / f"{name}.so"]
        subprocess.run(command, check=True)
        libraries.append(tmp_path / f"{name}.so")
    assert tried(libraries) == "twice the same"
