"""The models that the tests put into repositories."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import TensorProto, helper

Shape = Sequence[int | str]

COPY = """
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([self.copied(request)]) for request in requests]

    def copied(self, request):
        return pb_utils.Tensor("Y", pb_utils.get_input_tensor_by_name(request, "X").as_numpy())
"""
"""Copies input X to output Y."""

BROKEN = "import no_such_module_xyz\n"
"""A model that cannot be imported."""

VALUE = """
import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([{value}], np.float32))]) for _ in requests]
"""
"""Whatever comes in, the same number goes out: `VALUE.format(value=1)`."""

HELD = """
import pathlib
import time

folder = pathlib.Path({folder!r})


def wait_for(name):
    (folder / f"{{name}}.reached").touch()
    end = time.monotonic() + 30
    while not (folder / name).exists() and time.monotonic() < end:
        time.sleep(0.005)


class TritonPythonModel:
    def initialize(self, args):
        wait_for({initialize!r}) if {initialize!r} else None

    def execute(self, requests):
        import triton_python_backend_utils as pb_utils
        wait_for({execute!r}) if {execute!r} else None
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", one.inputs()[0].as_numpy())]) for one in requests]

    def finalize(self):
        wait_for({finalize!r}) if {finalize!r} else None
"""
"""A copy whose steps wait until a file of a given name appears; `NAME.reached` tells that a step has begun."""


def held(folder: Path, *, initialize: str = "", execute: str = "", finalize: str = "") -> str:
    return HELD.format(folder=str(folder), initialize=initialize, execute=execute, finalize=finalize)


def io(datatype: str = "FP32", dims: str = "-1") -> str:
    """The inputs and outputs of a model that copies X to Y."""
    tensor = f"data_type: TYPE_{datatype} dims: [ {dims} ]"
    return f'input [ {{ name: "X" {tensor} }} ]\noutput [ {{ name: "Y" {tensor} }} ]\n'


def config(datatype: str = "FP32", more: str = "") -> str:
    """The configuration of a Python model that copies X to Y."""
    return f'backend: "python"\n{io(datatype)}{more}\n'


def json_config(**more: object) -> str:
    """The same configuration as JSON."""
    sides = {"input": "X", "output": "Y"}
    tensors = {side: [{"name": name, "data_type": "TYPE_FP32", "dims": [-1]}] for side, name in sides.items()}
    return json.dumps({"backend": "python", **tensors, **more})


def copy(datatype: str = "FP32", more: str = "", version: str = "1") -> dict[str, str]:
    """The files of a Python model that copies X to Y, by their paths in its folder."""
    return {"config.pbtxt": config(datatype, more), f"{version}/model.py": COPY}


def onnx_copy(shape: Shape = ("batch", 4), out: Shape | None = None, kind: int = TensorProto.FLOAT) -> bytes:
    """An ONNX file that copies X to Y. `out` is the shape that the file declares for Y, if not the same."""
    sides = [helper.make_tensor_value_info(name, kind, list(sizes)) for name, sizes in (("X", shape), ("Y", out or shape))]
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "copy", sides[:1], sides[1:])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(onnx.ModelProto.SerializeToString(made))
