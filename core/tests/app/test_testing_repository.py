"""What `moorage.testing` has for tests of applications."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from moorage.config import parse_text
from moorage.config.schema import ModelConfig
from moorage.errors import NotFound
from moorage.testing import RepositoryBuilder
from moorage.testing.fixtures import StartServer, moorage_repository, moorage_server

if TYPE_CHECKING:
    from core.tests.app.conftest import Stage

__all__ = ["moorage_repository", "moorage_server"]

CONFIG = """
    backend: "trial"
    input [{ name: "X" data_type: TYPE_FP32 dims: [-1] }]
    output [{ name: "Y" data_type: TYPE_FP32 dims: [-1] }]
"""


def test_files_are_laid_out(tmp_path: Path) -> None:
    folder = tmp_path / "labels"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    builder = RepositoryBuilder(tmp_path / "new" / "repository")
    made = builder.add(
        "m",
        {
            "1/model.bin": b"\0",
            "1/deep/note.txt": "\n    one\n      two\n",
            "labels": folder,
            "copy.txt": folder / "a.txt",
            "3/": "",
        },
        config='\n    name: "m"\n',
    )
    assert made == builder.path / "m"
    assert (made / "1/model.bin").read_bytes() == b"\0"
    assert (made / "1/deep/note.txt").read_text() == "\none\n  two\n"
    assert (made / "labels/a.txt").read_text() == (made / "copy.txt").read_text() == "a"
    assert (made / "3").is_dir() and not any((made / "3").iterdir())
    assert (made / "config.pbtxt").read_text() == '\nname: "m"\n'
    builder.remove("m")
    assert not any(builder.path.iterdir())


def test_models_of_the_common_kinds_have_short_ways(tmp_path: Path) -> None:
    builder = RepositoryBuilder(tmp_path)
    source = tmp_path / "source.onnx"
    source.write_bytes(b"graph")
    builder.onnx("o", source, version=2)
    builder.onnx("b", b"bytes")
    builder.python("p", "    x = 1", config=ModelConfig(name="p", backend="python"))
    assert (tmp_path / "o/2/model.onnx").read_bytes() == b"graph" and not (tmp_path / "o/config.pbtxt").exists()
    assert (tmp_path / "b/1/model.onnx").read_bytes() == b"bytes"
    assert (tmp_path / "p/1/model.py").read_text() == "x = 1"
    assert parse_text((tmp_path / "p/config.pbtxt").read_text()).config.backend == "python"


def test_servers_of_the_fixture_serve_its_repository(
    stage: Stage, moorage_repository: RepositoryBuilder, moorage_server: StartServer
) -> None:
    moorage_repository.add("triple", {"1/model.trial": "triple"}, config=CONFIG)
    server = moorage_server(id="mine")
    assert server.infer("triple", {"X": np.array([2], np.float32)})["Y"].tolist() == [6]
    other = moorage_server(model_control_mode="explicit")
    with pytest.raises(NotFound):
        other.infer("triple", {"X": np.array([2], np.float32)})
    assert server.metadata().name == "mine" and server.live() and other.live()


def test_the_fixture_closes_its_servers(tmp_path: Path, stage: Stage) -> None:
    steps = moorage_server.__wrapped__(RepositoryBuilder(tmp_path))  # type: ignore[attr-defined]
    server = next(steps)()
    assert server.live()
    assert next(steps, "over") == "over"
    assert not server.live()
