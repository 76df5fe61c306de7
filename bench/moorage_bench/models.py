"""Writes the model repositories that the servers serve, and the requests that go with them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

IDENTITY = "identity"
SLOW = "slow"
SIMPLE = "simple"
LARGE = "large"

_IDENTITY_CONFIG = """\
backend: "python"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
"""

_IDENTITY_MODEL = '''\
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Gives back what it gets."""

    def execute(self, requests):
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT0", array)]))
        return responses
'''

_SIMPLE_CONFIG = """\
platform: "onnxruntime_onnx"
max_batch_size: 64
input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "INPUT1" data_type: TYPE_INT32 dims: [ -1 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ -1 ] }, { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ -1 ] } ]
instance_group [ { count: 1 kind: KIND_CPU } ]
parameters { key: "intra_op_thread_count" value { string_value: "1" } }
"""

_MLSERVER_RUNTIME = '''\
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class OnnxRuntime(MLModel):
    """Runs an ONNX file on one thread."""

    async def load(self):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            self.settings.parameters.uri, options, providers=["CPUExecutionProvider"]
        )
        return True

    async def predict(self, payload):
        feed = {tensor.name: NumpyCodec.decode_input(tensor) for tensor in payload.inputs}
        arrays = self.session.run(None, feed)
        names = [output.name for output in self.session.get_outputs()]
        outputs = [NumpyCodec.encode_output(name, array) for name, array in zip(names, arrays)]
        return InferenceResponse(model_name=self.name, outputs=outputs)
'''


def identity_repository(root: Path, parameters: Mapping[str, str] | None = None) -> Path:
    """A Python model that returns its FP32 input [N, M]; `parameters` go into its configuration."""
    lines = [
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}\n' for key, value in (parameters or {}).items()
    ]
    _write(root / IDENTITY / "config.pbtxt", _IDENTITY_CONFIG + "".join(lines))
    _write(root / IDENTITY / "1/model.py", _IDENTITY_MODEL)
    return root


def slow_repository(root: Path, seconds: float) -> Path:
    """A Python model beside what is there whose `initialize` takes that long."""
    _write(root / SLOW / "config.pbtxt", _IDENTITY_CONFIG)
    initialize = f"    def initialize(self, args):\n        import time\n\n        time.sleep({seconds})\n\n"
    _write(root / SLOW / "1/model.py", _IDENTITY_MODEL.replace("    def execute(", initialize + "    def execute(", 1))
    return root


def simple_repository(root: Path) -> Path:
    """The ONNX model `simple` in Triton's layout: OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1, INT32 [N, M]."""
    _write(root / SIMPLE / "config.pbtxt", _SIMPLE_CONFIG)
    write_add_sub(root / SIMPLE / "1/model.onnx")
    return root


def simple_models(root: Path, count: int) -> Path:
    """The same ONNX model under so many names. Kept for the next run."""
    root = root / f"simple-{count}"
    marker = root.with_suffix(".ready")
    if not marker.exists():
        for number in range(count):
            _write(root / f"simple_{number}" / "config.pbtxt", _SIMPLE_CONFIG)
            write_add_sub(root / f"simple_{number}" / "1/model.onnx")
        marker.touch()
    return root


def mlserver_repository(root: Path) -> Path:
    """The same ONNX model for MLServer."""
    write_add_sub(root / SIMPLE / "model.onnx")
    settings = {
        "name": SIMPLE,
        "implementation": "mlserver_runtime.OnnxRuntime",
        "parameters": {"uri": str(root / SIMPLE / "model.onnx")},
    }
    _write(root / SIMPLE / "model-settings.json", json.dumps(settings))
    _write(root / "mlserver_runtime.py", _MLSERVER_RUNTIME)
    return root


def write_add_sub(path: Path) -> None:
    """Write the ONNX model to this file."""
    import onnx  # noqa: PLC0415 - few sets need it
    from onnx import TensorProto, helper  # noqa: PLC0415

    def tensor(name: str) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.INT32, ["N", "M"])

    inputs = ["INPUT0", "INPUT1"]
    nodes = [helper.make_node("Add", inputs, ["OUTPUT0"]), helper.make_node("Sub", inputs, ["OUTPUT1"])]
    graph = helper.make_graph(nodes, SIMPLE, [tensor(name) for name in inputs], [tensor("OUTPUT0"), tensor("OUTPUT1")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


def large_repository(root: Path, megabytes: int) -> Path:
    """The ONNX model `large`: one matrix of about so many megabytes, FP32, which a vector is multiplied with."""
    import onnx  # noqa: PLC0415 - two sets alone need it
    from onnx import TensorProto, helper, numpy_helper  # noqa: PLC0415

    rows = 2500
    columns = megabytes * 1_000_000 // (4 * rows)
    weights = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in (("X", rows), ("Y", columns))]
    node = helper.make_node("MatMul", ["X", "W"], ["Y"])
    graph = helper.make_graph([node], LARGE, sides[:1], sides[1:], [numpy_helper.from_array(weights, "W")])
    path = root / LARGE / "1/model.onnx"
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return root


def add_sub_inputs(columns: int) -> dict[str, np.ndarray]:
    """Inputs of the ONNX model, INT32 [1, columns] each."""
    row = np.arange(columns, dtype=np.int32).reshape(1, columns)
    return {"INPUT0": row, "INPUT1": row + 1}


def many_models(root: Path, count: int) -> Path:
    """A repository of `count` models, each with a configuration and one version that holds one file. Kept for the next run."""
    root = root / f"models-{count}"
    marker = root.with_suffix(".ready")
    if not marker.exists():
        for number in range(count):
            name = f"model_{number:05d}"
            _write(root / name / "config.pbtxt", f'name: "{name}"\nbackend: "python"\n')
            _write(root / name / "1/model.py", "class TritonPythonModel:\n    pass\n")
        marker.touch()
    return root


def small_and_large(root: Path, megabytes: int) -> Path:
    """50 files of 20 kB, as of 50 models, and one large file. Kept for the next run."""
    root = root / f"files-{megabytes}"
    marker = root.with_suffix(".ready")
    if not marker.exists():
        for number in range(50):
            _fill(root / f"model_{number:02d}/1/model.bin", 20_000)
        _fill(root / "large/1/model.bin", megabytes << 20)
        marker.touch()
    return root


def _fill(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - start)))


def hollow(root: Path, megabytes: int) -> Path:
    """One file of so many megabytes that takes no space."""
    path = root / f"hollow-{megabytes}" / "large/1/model.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(megabytes << 20)
    return path.parents[2]


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
