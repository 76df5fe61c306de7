"""OpenVINO."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from moorage_bench.frameworks.framework import ADD_SUB, LAYERS, WIDTH, Call, weights

_SETTINGS = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}


def write(kind: str, folder: Path) -> None:
    """Write `model.xml` and `model.bin`."""
    import openvino  # noqa: PLC0415 - where a framework is missing, the others are measured
    from openvino import opset13 as ops  # noqa: PLC0415

    names = ["INPUT0", "INPUT1"] if kind == ADD_SUB else ["INPUT0"]
    columns = -1 if kind == ADD_SUB else WIDTH
    inputs = [_named(ops.parameter([-1, columns], np.float32, name=name), name) for name in names]
    if kind == ADD_SUB:
        outputs = [ops.add(*inputs), ops.subtract(*inputs)]
    else:
        value = inputs[0]
        for _ in range(LAYERS):
            value = ops.matmul(value, ops.constant(weights()), False, False)
        outputs = [value]
    results = [ops.result(_named(node, f"OUTPUT{number}")) for number, node in enumerate(outputs)]
    openvino.save_model(openvino.Model(results, inputs, kind), folder / "model.xml", compress_to_fp16=False)


def bare(folder: Path) -> Call:
    """`InferRequest.infer`, sharing the inputs."""
    import openvino  # noqa: PLC0415

    request = openvino.Core().compile_model(str(folder / "model.xml"), "CPU", _SETTINGS).create_infer_request()
    return lambda inputs: request.infer(dict(inputs), share_inputs=True)


def _named(node: Any, name: str) -> Any:
    node.output(0).get_tensor().set_names({name})
    return node
