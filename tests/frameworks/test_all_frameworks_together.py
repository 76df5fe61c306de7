"""One server with models of every framework: loaded at once, asked at once, replaced and unloaded, and none harms another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from frameworks import all_together
from layers.sources import ROOT
from moorage.testing import RepositoryBuilder

PLUGINS = ROOT / "plugins"
CONFIG = """
max_batch_size: 8
input [{ name: "LEFT" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "RIGHT" data_type: TYPE_FP32 dims: [ 3 ] }]
output [{ name: "TOTAL" data_type: TYPE_FP32 dims: [ 3 ] }, { name: "GAP" data_type: TYPE_FP32 dims: [ 3 ] }]
instance_group { kind: KIND_CPU count: 2 }
"""
MODELS = {
    "onnx": ("onnx/tests/models/add_sub.onnx", "model.onnx", ""),
    "openvino": ("openvino/tests/models/add_sub.xml", "model.xml", ""),
    "python": ("python/tests/models/add_sub.py", "model.py", 'backend: "python"'),
    "tensorflow_graph": ("tensorflow/tests/models/add_sub.graphdef", "model.graphdef", 'platform: "tensorflow_graphdef"'),
    "tensorflow_saved": ("tensorflow/tests/models/add_sub.savedmodel", "model.savedmodel", ""),
    "torchscript": ("torchscript/tests/models/add_sub.pt", "model.pt", ""),
}
FRAMEWORKS = ["onnxruntime", "openvino", "tensorflow", "torch"]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    builder = RepositoryBuilder(tmp_path / "repository")
    for name, (source, filename, more) in MODELS.items():
        builder.add(name, {f"1/{filename}": PLUGINS / source}, config=CONFIG + more)
    return builder.path


def run(repository: Path) -> dict[str, Any]:
    command = [sys.executable, "-W", "ignore", all_together.__file__, str(repository)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-4000:]}"
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_all_frameworks_live_in_one_process(repository: Path) -> None:
    found = run(repository)
    assert {name: state for name, state in found["states"].items() if "READY" not in state} == {}
    assert found["frameworks"] == FRAMEWORKS
    assert found["wrong"] == {}
    asked = all_together.CLIENTS * all_together.REQUESTS
    assert {name: count >= asked for name, count in found["right"].items()} == dict.fromkeys(MODELS, True)
