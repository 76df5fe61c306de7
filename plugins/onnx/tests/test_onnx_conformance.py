"""The suite that every backend must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto, helper

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.testing import BackendTests, Files, ModelCase, Mutant
from moorage.types import DataType
from moorage_onnx.backend import OnnxBackend

MODELS = Path(__file__).parent / "models"
LARGEST = 2**63 - 1
Change = Callable[[Any], object]


class TestOnnxBackend(BackendTests):
    backend = OnnxBackend
    strings_are_text = True

    def add_sub(self) -> ModelCase:
        config = ModelConfig(
            name="add_sub",
            max_batch_size=8,
            input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
            output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
        )
        return ModelCase(MODELS / "add_sub.onnx", config, "model.onnx")

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype) for datatype in DataType if datatype is not DataType.INVALID}

    def with_weights(self) -> ModelCase:
        config = ModelConfig(
            name="table",
            input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
            output=(ModelOutput("VALUES", DataType.FP32, (-1, 8)),),
        )
        return ModelCase(MODELS / "table.onnx", config, "model.onnx", main="model.onnx")

    def formats(self) -> Mapping[str, ModelCase]:
        config = ModelConfig(
            name="conv",
            max_batch_size=8,
            input=(ModelInput("IMAGE", DataType.FP32, dims=(1, -1, -1)),),
            output=(ModelOutput("BLURRED", DataType.FP32, (1, -1, -1)),),
        )
        return {"file": ModelCase(MODELS / "conv.onnx", config, "model.onnx"), "folder": self.with_weights()}

    def mutants(self, kind: str, files: Files) -> Iterator[Mutant]:
        path = "model.onnx" if kind == "file" else "model.onnx/model.onnx"
        for name, change in CHANGES.items():
            model = onnx.ModelProto.FromString(files[path])
            change(model)
            yield Mutant(f"{path}: {name}", {**files, path: model.SerializeToString()})

    def identity(self, datatype: DataType) -> ModelCase:
        config = ModelConfig(
            name="identity",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
        )
        return ModelCase(MODELS / f"identity_{datatype.name.lower()}.onnx", config, "model.onnx")


def each_dim(size: int | str) -> Change:
    """All dimensions of inputs and outputs are this."""

    def change(model: Any) -> None:
        for value in (*model.graph.input, *model.graph.output):
            for dim in value.type.tensor_type.shape.dim:
                dim.Clear()
                if isinstance(size, int):
                    dim.dim_value = size
                else:
                    dim.dim_param = size

    return change


def each_type(number: int) -> Change:
    def change(model: Any) -> None:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.elem_type = number

    return change


def weights(**fields: Any) -> Change:
    """Fields of the weights are these."""

    def change(model: Any) -> None:
        for tensor in model.graph.initializer:
            for name, value in fields.items():
                if name in ("dims", "float_data"):
                    del getattr(tensor, name)[:]
                    getattr(tensor, name).extend(value)
                else:
                    setattr(tensor, name, value)

    return change


def external(**entries: str) -> Change:
    """The weights lie outside, at a place that is no good."""

    def change(model: Any) -> None:
        for tensor in model.graph.initializer:
            tensor.ClearField("raw_data")
            del tensor.external_data[:]
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in entries.items():
                tensor.external_data.add(key=key, value=value)

    return change


def node(**fields: Any) -> Change:
    """Fields of the first node are these."""

    def change(model: Any) -> None:
        first = model.graph.node[0]
        for name, value in fields.items():
            if name in ("input", "output"):
                del getattr(first, name)[:]
                getattr(first, name).extend(value)
            else:
                setattr(first, name, value)

    return change


def attribute(name: str, value: Any) -> Change:
    def change(model: Any) -> None:
        model.graph.node[0].attribute.append(helper.make_attribute(name, value))

    return change


def nested(depth: int) -> Change:
    """Graphs inside graphs."""

    def change(model: Any) -> None:
        inner = helper.make_graph([], "inner", [], [])
        for _ in range(depth):
            inner = helper.make_graph([helper.make_node("If", ["c"], ["d"], then_branch=inner, else_branch=inner)], "g", [], [])
            if inner.ByteSize() > 2**20:
                break
        model.graph.node.append(helper.make_node("If", ["c"], ["e"], then_branch=inner, else_branch=inner))

    return change


def functions(*calls: tuple[str, str]) -> Change:
    """Functions that call each other; the first is called by the graph."""

    def change(model: Any) -> None:
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
        model.opset_import.append(helper.make_opsetid("own", 1))
        for name, called in calls:
            body = [helper.make_node(called, ["x"], ["y"], domain="own")]
            model.functions.append(helper.make_function("own", name, ["x"], ["y"], body, opsets))
        first = model.graph.input[0].name
        model.graph.node.append(helper.make_node(calls[0][0], [first], ["from_function"], domain="own"))

    return change


def many(number: int) -> Change:
    """A long chain of nodes."""

    def change(model: Any) -> None:
        last = model.graph.input[0].name
        for index in range(number):
            model.graph.node.append(helper.make_node("Identity", [last], [f"link_{index}"]))
            last = f"link_{index}"

    return change


def cleared(*names: str) -> Change:
    return lambda model: [model.ClearField(name) for name in names]


def graph_cleared(*names: str) -> Change:
    return lambda model: [model.graph.ClearField(name) for name in names]


def version(number: int) -> Change:
    return lambda model: setattr(model, "ir_version", number)


def opset(number: int) -> Change:
    return lambda model: setattr(model.opset_import[0], "version", number)


def renamed(name: str) -> Change:
    def change(model: Any) -> None:
        for value in (*model.graph.input, *model.graph.output):
            value.name = name

    return change


CHANGES: Mapping[str, Change] = {
    "no graph": cleared("graph"),
    "no opsets": cleared("opset_import"),
    "no version": cleared("ir_version"),
    "no nodes": graph_cleared("node"),
    "no weights": graph_cleared("initializer"),
    "no inputs": graph_cleared("input"),
    "no outputs": graph_cleared("output"),
    "no inputs, outputs, nodes": graph_cleared("input", "output", "node"),
    **{f"version {number}": version(number) for number in (0, 99, LARGEST)},
    **{f"opset {number}": opset(number) for number in (0, -1, 1, 999, LARGEST)},
    "opset of another domain": lambda model: setattr(model.opset_import[0], "domain", "nowhere"),
    "an opset twice": lambda model: model.opset_import.append(helper.make_opsetid("", 9)),
    **{f"dims of {size}": each_dim(size) for size in (0, 1, -1, -7, 2**31, 2**40, LARGEST, "", "batch", "n" * 10_000)},
    **{f"elements of type {number}": each_type(number) for number in (0, *range(2, 24), 99, 2**31 - 1)},
    "weights of no size": weights(dims=[]),
    "weights of many dims": weights(dims=[1] * 1000),
    **{f"weights of size {size}": weights(dims=[size]) for size in (0, 1, -1, 2**31, 2**62)},
    "weights of overflowing size": weights(dims=[2**32, 2**32, 16]),
    **{f"weights of type {number}": weights(data_type=number) for number in (0, 2, 7, 8, 9, 16, 22, 99)},
    "weights cut short": weights(raw_data=b"123"),
    "weights in two places": weights(float_data=[1.0] * 9),
    "weights without a name": weights(name=""),
    "weights in a file that is not there": external(location="nowhere.bin"),
    "weights in a file outside": external(location="../../../etc/hostname"),
    "weights in a file by its whole path": external(location="/etc/hostname"),
    "weights in a folder": external(location="."),
    "weights in a file without a name": external(location=""),
    "weights in no file": external(),
    "weights in the model itself": external(location="model.onnx"),
    "weights in a name with a zero": external(location="a\0b"),
    "weights beyond the end": external(location="rows.bin", offset=str(2**40)),
    "weights before the beginning": external(location="rows.bin", offset="-64"),
    "weights at no number": external(location="rows.bin", offset="many"),
    "weights at a huge number": external(location="rows.bin", offset="9" * 40),
    "weights of a length too large": external(location="rows.bin", length=str(2**50)),
    "weights of a length below nothing": external(location="rows.bin", length="-1"),
    "weights at an odd place": external(location="rows.bin", offset="3"),
    "weights in memory": external(location="*/_ORT_MEM_ADDR_/*", offset="4096", length="131072"),
    "an operator that does not exist": node(op_type="NoSuchOperator"),
    "an operator of no domain": node(domain="nowhere"),
    "an operator without a name": node(op_type=""),
    "an operator without inputs": node(input=[]),
    "an operator without outputs": node(output=[]),
    "an operator of inputs that are not there": node(input=["nowhere"] * 2),
    "an operator of itself": lambda model: node(input=[model.graph.node[0].output[0]] * 2)(model),
    "an operator of too many inputs": node(input=["IMAGE"] * 300),
    "an output that is an input": lambda model: node(output=[model.graph.input[0].name])(model),
    **{
        f"the operator {name}": node(op_type=name)
        for name in ("Loop", "If", "Scan", "Reshape", "Resize", "Gather", "Cast", "LSTM")
    },
    "strides of nothing": attribute("strides", [0, 0]),
    "strides below nothing": attribute("strides", [-1, -1]),
    "huge pads": attribute("pads", [2**40] * 4),
    "pads below nothing": attribute("pads", [-(2**40)] * 4),
    "huge dilations": attribute("dilations", [2**40] * 2),
    "a huge group": attribute("group", 2**40),
    "a group of nothing": attribute("group", 0),
    "a huge kernel": attribute("kernel_shape", [2**31, 2**31]),
    "an axis out of range": attribute("axis", 2**40),
    "an attribute of another kind": attribute("group", "text"),
    "an attribute without a name": lambda model: model.graph.node[0].attribute.append(helper.make_attribute("", 1)),
    "an attribute of no kind": lambda model: model.graph.node[0].attribute.append(onnx.AttributeProto(name="group", i=1)),
    "a function that calls itself": functions(("f", "f")),
    "functions that call each other": functions(("f", "g"), ("g", "f")),
    "a function that is not there": functions(("f", "nowhere")),
    "a chain of functions": functions(*((f"f{index}", f"f{index + 1}") for index in range(300))),
    **{f"graphs {depth} deep": nested(depth) for depth in (3, 12)},
    "a chain of operators": many(3000),
    "inputs and outputs without a name": renamed(""),
    "inputs and outputs of one name": renamed("same"),
    "names that are no text": renamed("\ufffd\u202e\0"),
    "long names": renamed("x" * 100_000),
    "a graph twice": lambda model: model.graph.node.extend(list(model.graph.node)),
    "inputs twice": lambda model: model.graph.input.extend(list(model.graph.input)),
    "outputs twice": lambda model: model.graph.output.extend(list(model.graph.output)),
    "metadata twice": lambda model: [model.metadata_props.add(key="k", value="v") for _ in range(2)],
}
