from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import ModelError
from moorage.testing import ModelCase
from moorage.testing.corruption import run_harms
from moorage.types import DataType
from moorage_onnx.backend import OnnxBackend
from moorage_onnx.onnx_file import inspect_file

CHILD = """
import os, sys
from pathlib import Path
import numpy as np
from moorage.backend import Placement
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.testing import ModelCase
from moorage_onnx.backend import OnnxBackend

source, folder, harm = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
context = ModelCase(source, ModelConfig(name="table"), "model.onnx").context(folder)
model = OnnxBackend().load(context)
instances = [model.instance(Placement("i", InstanceKind.KIND_CPU))]
weights = context.model_file / "rows.bin"
if harm == "truncate":
    os.truncate(weights, 0)
else:
    weights.write_bytes(bytes(weights.stat().st_size))
for instance in instances:
    values = instance.run({"ROW": np.arange(4096)}, ["VALUES"])["VALUES"]
    assert (values == np.arange(4096 * 8, dtype=np.float32).reshape(4096, 8)).all()
print("unharmed")
"""


def test_external_weights_are_used(instance: Callable[..., Any]) -> None:
    values = instance("table").run({"ROW": np.array([2, 4095])}, ["VALUES"])["VALUES"]
    np.testing.assert_array_equal(values[:, 0], [16, 32760])


def test_an_instance_keeps_the_weights_that_its_session_reads(instance: Callable[..., Any]) -> None:
    alone = instance("table")
    gc.collect()
    ballast = [np.full(4096 * 8, np.nan, np.float32) for _ in range(50)]
    values = alone.run({"ROW": np.arange(4096)}, ["VALUES"])["VALUES"]
    assert np.isfinite(values).all() and len(ballast) == 50


@pytest.mark.parametrize("harm", ["truncate", "overwrite"])
def test_harm_to_the_weights_of_a_loaded_model_does_not_reach_it(harm: str, models: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(models / "table.onnx"), str(tmp_path), harm]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stdout.strip()) == (0, "unharmed"), child.stderr


def test_harm_to_a_file_that_holds_its_weights_does_not_reach_the_loaded_model(models: Path, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    whole = tmp_path / "whole.onnx"
    onnx.save(onnx.load(models / "table.onnx" / "model.onnx"), whole)
    config = ModelConfig(
        name="table",
        input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
        output=(ModelOutput("VALUES", DataType.FP32, (-1, 8)),),
    )
    report = run_harms(ModelCase(whole, config, "model.onnx"), "onnxruntime")
    assert not report.bad(), report.explain()


def test_the_test_above_would_see_a_crash(models: Path, tmp_path: Path) -> None:
    """Without the plugin's care, truncated weights kill the process."""
    code = """
import os, shutil, sys
import numpy as np, onnxruntime as ort
shutil.copytree(sys.argv[1], sys.argv[2])
session = ort.InferenceSession(sys.argv[2] + "/model.onnx", providers=["CPUExecutionProvider"])
os.truncate(sys.argv[2] + "/rows.bin", 0)
session.run(None, {"ROW": np.arange(4096)})
"""
    command = [sys.executable, "-c", code, str(models / "table.onnx"), str(tmp_path / "model.onnx")]
    assert subprocess.run(command, capture_output=True, check=False).returncode < 0


def test_weights_that_are_missing_are_named(load: Callable[..., Any], models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "copy" / "model.onnx"
    broken.mkdir(parents=True)
    (broken / "model.onnx").write_bytes((models / "table.onnx" / "model.onnx").read_bytes())
    with pytest.raises(ModelError, match=r"model 'table'.*rows\.bin.*missing"):
        load_folder(broken, tmp_path)


def test_weights_that_are_too_short_are_an_error(models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "copy" / "model.onnx"
    broken.mkdir(parents=True)
    for file in (models / "table.onnx").iterdir():
        (broken / file.name).write_bytes(file.read_bytes())
    os.truncate(broken / "rows.bin", 1000)
    with pytest.raises(ModelError, match="model 'table'"):
        load_folder(broken, tmp_path)


def test_weights_outside_the_folder_are_refused(models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "copy" / "model.onnx"
    broken.mkdir(parents=True)
    content = (models / "table.onnx" / "model.onnx").read_bytes()
    (broken / "model.onnx").write_bytes(content.replace(b"rows.bin", b"../x.bin"))
    (broken.parent / "x.bin").write_bytes((models / "table.onnx" / "rows.bin").read_bytes())
    with pytest.raises(ModelError, match=r"model 'table': its weights '\.\./x\.bin' lie outside"):
        load_folder(broken, tmp_path)


def test_weights_in_a_file_that_can_have_no_name_are_refused(models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "copy" / "model.onnx"
    broken.mkdir(parents=True)
    content = (models / "table.onnx" / "model.onnx").read_bytes()
    (broken / "model.onnx").write_bytes(content.replace(b"rows.bin", b"rows\0bin"))
    with pytest.raises(ModelError, match=r"model 'table': 'rows\\x00bin' is no name of a file"):
        load_folder(broken, tmp_path)


def load_folder(folder: Path, tmp_path: Path) -> None:
    OnnxBackend().load(ModelCase(folder, ModelConfig(name="table"), "model.onnx").context(tmp_path / "repository"))


@pytest.mark.parametrize("cut", [0, 1, 7, 50, 200])
def test_looking_into_a_broken_file_raises_nothing(cut: int, models: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes((models / "table.onnx" / "model.onnx").read_bytes()[:cut] + b"\xff" * 20)
    inspect_file(file)


def test_looking_into_endless_subgraphs_comes_to_an_end(tmp_path: Path) -> None:
    graph = b""
    for _ in range(5000):  # graph { node { attribute { g: graph } } }
        for tag in (0x32, 0x2A, 0x0A):
            graph = bytes([tag]) + varint(len(graph)) + graph
    file = tmp_path / "model.onnx"
    file.write_bytes(b"\x3a" + varint(len(graph)) + graph)
    assert inspect_file(file).external == frozenset()


def varint(number: int) -> bytes:
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def test_weights_inside_subgraphs_are_found(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    inner = onnx.TensorProto(name="w", data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    inner.external_data.add(key="location", value="deep.bin")
    body = helper.make_graph([], "body", [], [helper.make_tensor_value_info("w", 1, [1])], [inner])
    constant = helper.make_node("Constant", [], ["c"], value=inner)
    node = helper.make_node("If", ["x"], ["y"], then_branch=body, else_branch=body)
    file = tmp_path / "model.onnx"
    file.write_bytes(helper.make_model(helper.make_graph([node], "g", [], [])).SerializeToString())
    assert inspect_file(file).external == {"deep.bin"}
    file.write_bytes(helper.make_model(helper.make_graph([constant], "g", [], [])).SerializeToString())
    assert inspect_file(file).external == {"deep.bin"}
