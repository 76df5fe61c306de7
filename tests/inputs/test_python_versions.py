"""Versions of a Python model that bring files of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from inputs.conftest import Serve
from inputs.models import COPY, config
from inputs.repository import model

SOURCE = """
import os

import helper
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = os.path.join(args["model_repository"], args["model_version"])
        with open(os.path.join(folder, "weights.bin"), "rb") as file:
            self.weights = np.frombuffer(file.read(), np.float32)

    def execute(self, requests):
        import helper as again

        values = np.array([helper.VALUE, again.VALUE, *self.weights], np.float32)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", values)]) for _ in requests]
"""


def test_each_version_sees_its_own_module_and_file(serve: Serve) -> None:
    files: dict[str, str | bytes] = {"config.pbtxt": config(more="version_policy: { all { }}")}
    for version in (1, 2):
        files |= {
            f"{version}/model.py": SOURCE,
            f"{version}/helper.py": f"VALUE = {version}",
            f"{version}/weights.bin": np.full(1, 10 * version, np.float32).tobytes(),
        }
    server = serve(model("m", files))
    assert server.output("m", version="1") == [1, 1, 10]
    assert server.output("m", version="2") == [2, 2, 20]


ALONE = """
import numpy as np
import triton_python_backend_utils as pb_utils

from model import TritonPythonModel


def test_the_model() -> None:
    model = TritonPythonModel()
    request = pb_utils.InferenceRequest(inputs=[pb_utils.Tensor("X", np.array([1.5], np.float32))])
    (response,) = model.execute([request])
    assert response.output_tensors()[0].as_numpy().tolist() == [1.5]
"""


def test_a_model_is_tested_without_a_server(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(COPY)
    (tmp_path / "test_model.py").write_text(ALONE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_model.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
