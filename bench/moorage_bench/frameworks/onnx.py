"""ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from moorage_bench.frameworks.framework import ADD_SUB, LAYERS, WIDTH, Call, weights


def write(kind: str, folder: Path) -> None:
    """Write `model.onnx`."""
    import onnx  # noqa: PLC0415 - where a framework is missing, the others are measured
    from onnx import helper, numpy_helper  # noqa: PLC0415

    def value(name: str, columns: int | str) -> Any:
        return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", columns])

    if kind == ADD_SUB:
        inputs, outputs = ["INPUT0", "INPUT1"], ["OUTPUT0", "OUTPUT1"]
        nodes = [helper.make_node(name, inputs, [output]) for name, output in zip(("Add", "Sub"), outputs, strict=True)]
        graph = helper.make_graph(nodes, kind, [value(one, "M") for one in inputs], [value(one, "M") for one in outputs])
    else:
        names = ["INPUT0", *(f"layer_{number}" for number in range(1, LAYERS)), "OUTPUT0"]
        nodes = [helper.make_node("MatMul", [names[index], "W"], [names[index + 1]]) for index in range(LAYERS)]
        sides = [value(name, WIDTH) for name in ("INPUT0", "OUTPUT0")]
        graph = helper.make_graph(nodes, kind, sides[:1], sides[1:], [numpy_helper.from_array(weights(), "W")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"))


def bare(folder: Path) -> Call:
    """`InferenceSession.run`."""
    import onnxruntime  # noqa: PLC0415

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: session.run(names, dict(inputs))
