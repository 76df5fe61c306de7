"""Makes the small ONNX files of the tests: `python make_models.py` writes them beside itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
DTYPES = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING,
    "BF16": TensorProto.BFLOAT16,
}
Shape = Sequence[int | str] | None


def value(name: str, kind: int, shape: Shape) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, producer_name="moorage")


def add_sub() -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["LEFT", "RIGHT"], ["TOTAL"]), helper.make_node("Sub", ["LEFT", "RIGHT"], ["GAP"])]
    sides = [value(name, TensorProto.FLOAT, ["batch", 3]) for name in ("LEFT", "RIGHT")]
    results = [value(name, TensorProto.FLOAT, ["batch", 3]) for name in ("TOTAL", "GAP")]
    return model(nodes, sides, results)


def identity(kind: int, shape: Shape = ("batch", "any")) -> onnx.ModelProto:
    node = helper.make_node("Identity", ["X"], ["Y"])
    return model([node], [value("X", kind, shape)], [value("Y", kind, shape)])


def everything() -> onnx.ModelProto:
    """An identity of every type but BF16 at once: `IN_FP32` to `OUT_FP32` and so on."""
    kinds = {name: kind for name, kind in DTYPES.items() if name != "BF16"}
    nodes = [helper.make_node("Identity", [f"IN_{name}"], [f"OUT_{name}"]) for name in kinds]
    inputs = [value(f"IN_{name}", kind, ["batch", 2]) for name, kind in kinds.items()]
    outputs = [value(f"OUT_{name}", kind, ["batch", 2]) for name, kind in kinds.items()]
    return model(nodes, inputs, outputs)


def strings_and_bf16() -> onnx.ModelProto:
    nodes = [helper.make_node("Identity", ["S"], ["T"]), helper.make_node("Identity", ["X"], ["Y"])]
    inputs = [value("S", TensorProto.STRING, ["batch"]), value("X", TensorProto.BFLOAT16, ["batch"])]
    outputs = [value("T", TensorProto.STRING, ["batch"]), value("Y", TensorProto.BFLOAT16, ["batch"])]
    return model(nodes, inputs, outputs)


def four_bits() -> onnx.ModelProto:
    node = helper.make_node("Identity", ["X"], ["Y"])
    return model([node], [value("X", TensorProto.INT4, ["n"])], [value("Y", TensorProto.INT4, ["n"])], opset=21)


def float8() -> onnx.ModelProto:
    node = helper.make_node("Cast", ["X"], ["Y"], to=TensorProto.FLOAT8E4M3FN)
    return model([node], [value("X", TensorProto.FLOAT, ["n"])], [value("Y", TensorProto.FLOAT8E4M3FN, ["n"])], opset=19)


def conv() -> onnx.ModelProto:
    """A 3x3 box blur of images of any size."""
    weights = [numpy_helper.from_array(np.full((1, 1, 3, 3), 1 / 9, dtype=np.float32), "kernel")]
    node = helper.make_node("Conv", ["IMAGE", "kernel"], ["BLURRED"], pads=[1, 1, 1, 1])
    image = value("IMAGE", TensorProto.FLOAT, ["batch", 1, "height", "width"])
    return model([node], [image], [value("BLURRED", TensorProto.FLOAT, ["batch", 1, "height", "width"])], weights)


def table() -> onnx.ModelProto:
    """Looks up rows of a table of 4096 x 8."""
    rows = np.arange(4096 * 8, dtype=np.float32).reshape(4096, 8)
    node = helper.make_node("Gather", ["table", "ROW"], ["VALUES"])
    return model(
        [node],
        [value("ROW", TensorProto.INT64, ["batch"])],
        [value("VALUES", TensorProto.FLOAT, ["batch", 8])],
        [numpy_helper.from_array(rows, "table")],
    )


def reshape() -> onnx.ModelProto:
    """Fails inside unless it is given four numbers."""
    node = helper.make_node("Reshape", ["X", "square"], ["Y"])
    square = numpy_helper.from_array(np.array([2, 2]), "square")
    return model([node], [value("X", TensorProto.FLOAT, ["n"])], [value("Y", TensorProto.FLOAT, [2, 2])], [square])


def sequence() -> onnx.ModelProto:
    node = helper.make_node("SequenceConstruct", ["X"], ["LIST"])
    output = helper.make_tensor_sequence_value_info("LIST", TensorProto.FLOAT, None)
    return model([node], [value("X", TensorProto.FLOAT, ["batch"])], [output])


def save_table(folder: Path) -> None:
    """The table with its weights outside the model file."""
    folder.mkdir(exist_ok=True)
    onnx.save_model(table(), folder / "model.onnx", save_as_external_data=True, location="rows.bin", size_threshold=0)


def main() -> None:
    files = {"add_sub": add_sub(), "conv": conv(), "everything": everything(), "sequence": sequence(), "reshape": reshape()}
    files |= {f"identity_{name.lower()}": identity(kind) for name, kind in DTYPES.items()}
    files["unranked"] = identity(TensorProto.FLOAT, None)
    files["scalar"] = identity(TensorProto.FLOAT, ())
    files["float8"] = float8()
    files["int4"] = four_bits()
    files["strings_and_bf16"] = strings_and_bf16()
    for name, content in files.items():
        onnx.save_model(content, HERE / f"{name}.onnx")
    (HERE / "table.onnx").mkdir(exist_ok=True)
    save_table(HERE / "table.onnx")


if __name__ == "__main__":
    main()
