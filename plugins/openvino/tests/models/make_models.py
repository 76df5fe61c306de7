"""Makes the small models of the tests: `python make_models.py` writes them beside itself.

Needs openvino and onnx, and tensorflow for the models in its formats, which are left as they are without it.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper
from openvino import Layout, Model, PartialShape, Type, opset13, opset16

HERE = Path(__file__).parent
TYPES = {
    "bool": Type.boolean,
    "uint8": Type.u8,
    "uint16": Type.u16,
    "uint32": Type.u32,
    "uint64": Type.u64,
    "int8": Type.i8,
    "int16": Type.i16,
    "int32": Type.i32,
    "int64": Type.i64,
    "fp16": Type.f16,
    "fp32": Type.f32,
    "fp64": Type.f64,
    "bytes": Type.string,
    "bf16": Type.bf16,
}


def source(name: str, shape: list[Any], kind: Type = Type.f32, layout: str = "") -> Any:
    """An input."""
    node = opset13.parameter(PartialShape(shape), kind, name=name)
    node.output(0).set_names({name})
    if layout:
        node.layout = Layout(layout)
    return node


def result(name: str, node: Any, layout: str = "") -> Any:
    """An output of this name."""
    node.output(0).set_names({name})
    made = opset13.result(node)
    if layout:
        made.layout = Layout(layout)
    return made


def add_sub(shape: list[Any], layout: str = "") -> Model:
    left, right = source("LEFT", shape, layout=layout), source("RIGHT", shape, layout=layout)
    total, gap = opset13.add(left, right), opset13.subtract(left, right)
    return Model([result("TOTAL", total, layout), result("GAP", gap, layout)], [left, right], "add_sub")


def identity(kind: Type) -> Model:
    """The input is the output; nothing is computed."""
    given = source("X", [-1, -1], kind, "N...")
    made = Model([result("Y", opset16.identity(given), "N...")], [given], "identity")
    made.get_ordered_ops()[1].output(0).replace(given.output(0))
    return made


def plus_one(kind: Type, number: np.dtype) -> Model:
    """Computes in a type."""
    given = source("X", [-1, -1], kind)
    return Model([result("Y", opset13.add(given, opset13.constant(np.ones((1, 1), number))))], [given], "plus_one")


def conv(shape: list[Any], layout: str = "") -> Model:
    """A 3x3 box blur."""
    image = source("IMAGE", shape, layout=layout)
    kernel = opset13.constant(np.full((1, 1, 3, 3), 1 / 9, np.float32))
    blurred = opset13.convolution(image, kernel, [1, 1], [1, 1], [1, 1], [1, 1])
    return Model([result("BLURRED", blurred, layout)], [image], "conv")


def table() -> Model:
    """Looks up rows of a table of 1024 x 8."""
    row = source("ROW", [-1], Type.i64)
    rows = opset13.constant(np.arange(1024 * 8, dtype=np.float32).reshape(1024, 8))
    return Model([result("VALUES", opset13.gather(rows, row, opset13.constant(0)))], [row], "table")


def square() -> Model:
    """Cannot have another batch: it makes a square out of exactly four numbers."""
    given = source("X", [1, 4])
    return Model([result("Y", opset13.reshape(given, opset13.constant([2, 2]), False))], [given], "square")


def fixed_rows() -> Model:
    """Its output has two rows whatever comes in, so that only batches of two go through."""
    given = source("X", [2, 4])
    return Model([result("Y", opset13.reshape(given, opset13.constant([2, -1]), False))], [given], "fixed_rows")


def running_sum() -> Model:
    """Keeps a sum from one run to the next."""
    given = source("X", [-1, 2])
    before = opset13.read_value(opset13.constant(np.zeros((1, 2), np.float32)), "sum", Type.f32, PartialShape([-1, 2]))
    total = opset13.add(before, given)
    return Model([result("Y", total)], [opset13.assign(total, "sum")], [given], "running_sum")


def no_names() -> Model:
    """An input and two outputs from one place."""
    given = opset13.parameter(PartialShape([-1, 2]), Type.f32, name="given")
    doubled = opset13.add(given, given)
    doubled.friendly_name = "doubled"
    model = Model([opset13.result(doubled), opset13.result(doubled)], [given], "no_names")
    for port in (*model.inputs, *model.outputs):
        port.get_tensor().set_names(set())
    return model


def four_bits() -> Model:
    given = source("X", [4], Type.u4)
    return Model([result("Y", opset13.convert(given, "f32"))], [given], "four_bits")


def ir_models() -> dict[str, Model]:
    models = {f"identity_{name}": identity(kind) for name, kind in TYPES.items()}
    models["add_sub"] = add_sub([-1, 3], "N...")
    models["add_sub_static"] = add_sub([1, 3], "N...")
    models["add_sub_plain"] = add_sub([-1, 3])
    models["bounded"] = add_sub([ov.Dimension(1, 8), 3])
    models["unranked"] = unranked()
    models["conv"] = conv([1, 1, 5, 5], "NCHW")
    models["conv_open"] = conv([-1, 1, -1, -1], "NCHW")
    models["plus_one_int64"] = plus_one(Type.i64, np.dtype(np.int64))
    models["plus_one_uint64"] = plus_one(Type.u64, np.dtype(np.uint64))
    models["plus_one_fp64"] = plus_one(Type.f64, np.dtype(np.float64))
    for make in (table, square, fixed_rows, running_sum, no_names, four_bits):
        models[make.__name__] = make()
    return models


def name_the_result(file: Path) -> None:
    """Give the output, which is the input's tensor, a name of its own, as models out of other formats have it."""
    file.write_text(file.read_text().replace('type="Result"', 'type="Result" output_names="Y"'))


def unranked() -> Model:
    given = opset13.parameter(PartialShape.dynamic(), Type.f32, name="X")
    given.output(0).set_names({"X"})
    return Model([result("Y", opset13.relu(given))], [given], "unranked")


def save_onnx() -> None:
    sides = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("LEFT", "RIGHT")]
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in ("TOTAL", "GAP")]
    nodes = [helper.make_node("Add", ["LEFT", "RIGHT"], ["TOTAL"]), helper.make_node("Sub", ["LEFT", "RIGHT"], ["GAP"])]
    graph = helper.make_graph(nodes, "graph", sides, results)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(made, HERE / "add_sub.onnx")
    save_onnx_table(HERE / "table.onnx")


def save_onnx_table(folder: Path) -> None:
    """The table, with its rows outside the model file."""
    folder.mkdir(exist_ok=True)
    rows = numpy_helper.from_array(np.arange(1024 * 8, dtype=np.float32).reshape(1024, 8), "rows")
    row = helper.make_tensor_value_info("ROW", TensorProto.INT64, ["n"])
    values = helper.make_tensor_value_info("VALUES", TensorProto.FLOAT, ["n", 8])
    graph = helper.make_graph([helper.make_node("Gather", ["rows", "ROW"], ["VALUES"])], "graph", [row], [values], [rows])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save_model(made, folder / "model.onnx", save_as_external_data=True, location="rows.bin", size_threshold=0)


def save_tensorflow() -> None:
    import tensorflow as tf

    class Table(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rows = tf.Variable(np.arange(1024 * 8, dtype=np.float32).reshape(1024, 8))

        @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])  # type: ignore[untyped-decorator]
        def __call__(self, ROW: Any) -> dict[str, Any]:
            return {"VALUES": tf.gather(self.rows, ROW)}

    made = Table()
    tf.saved_model.save(made, str(HERE / "table.saved_model"), signatures={"serving_default": made.__call__})
    converter = tf.lite.TFLiteConverter.from_concrete_functions([made.__call__.get_concrete_function()], made)
    (HERE / "table.tflite").write_bytes(converter.convert())


def main() -> None:
    for name, model in ir_models().items():
        ov.serialize(model, HERE / f"{name}.xml")
        if name.startswith("identity_"):
            name_the_result(HERE / f"{name}.xml")
        if not (HERE / f"{name}.bin").stat().st_size:
            (HERE / f"{name}.bin").unlink()
    save_onnx()
    if importlib.util.find_spec("tensorflow"):
        save_tensorflow()


if __name__ == "__main__":
    main()
