"""The suite that every backend must pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.testing import BackendTests, ModelCase
from moorage.testing.backend_suite.loading import LoadingTests
from moorage.testing.backend_suite.running import RunningTests
from moorage.testing.corruption import Mutant, byte_mutants
from moorage.testing.model_case import Files
from moorage.types import DataType
from moorage_tensorflow.backend import GRAPHDEF_FILE, SAVEDMODEL_FOLDER, TensorFlowBackend
from moorage_tensorflow.runtime import import_runtime

MODELS = Path(__file__).parent / "models"
PROTO = f"{SAVEDMODEL_FOLDER}/saved_model.pb"
Random = np.random.Generator


@pytest.mark.heavy
@pytest.mark.timeout(600)
class TestTensorFlowBackend(BackendTests):
    backend = TensorFlowBackend
    mutant_count = 400

    def add_sub(self) -> ModelCase:
        return ModelCase(MODELS / "add_sub.savedmodel", adding(), SAVEDMODEL_FOLDER, main="saved_model.pb")

    def with_weights(self) -> ModelCase:
        config = ModelConfig(
            name="rows",
            input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
            output=(ModelOutput("VALUES", DataType.FP32, (-1, 8)),),
        )
        return ModelCase(MODELS / "rows.savedmodel", config, SAVEDMODEL_FOLDER, main="saved_model.pb")

    def mutants(self, kind: str, files: Files) -> Iterator[Mutant]:
        """Broken frozen graphs, too: they are tried in the same process, since it takes long to start."""
        graph = {GRAPHDEF_FILE: (MODELS / "add_sub.graphdef").read_bytes()}
        yield from byte_mutants(graph, 80)
        structured = broken_structures(files, graph)
        yield from islice(structured, 120)

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype) for datatype in DataType if datatype is not DataType.INVALID}

    def identity(self, datatype: DataType) -> ModelCase:
        config = ModelConfig(
            name="identity",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
        )
        return ModelCase(MODELS / f"identity_{datatype.name.lower()}.graphdef", config, GRAPHDEF_FILE)


class TestFrozenGraphs(LoadingTests, RunningTests):
    """What of the suite has to do with the kind of file."""

    backend = TensorFlowBackend

    def add_sub(self) -> ModelCase:
        return ModelCase(MODELS / "add_sub.graphdef", adding(), GRAPHDEF_FILE)


def adding() -> ModelConfig:
    return ModelConfig(
        name="add_sub",
        max_batch_size=8,
        input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
        output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
    )


def broken_structures(saved: Files, frozen: Files) -> Iterator[Mutant]:
    """SavedModels and frozen graphs in turn whose messages can be read, but say other things than before. Without end."""
    runtime = import_runtime("tests")
    changes = list(CHANGES.items())
    for index in count():
        rng = np.random.default_rng((9, index))
        name, change = changes[index // 2 % len(changes)]
        if index % 2:
            graph = runtime.v1.GraphDef.FromString(frozen[GRAPHDEF_FILE])
            change(graph, rng)
            yield Mutant(f"frozen graph, {name}, number {index}", {GRAPHDEF_FILE: graph.SerializeToString()})
        else:
            model = runtime.saved_model.SavedModel.FromString(saved[PROTO])
            graph_def = model.meta_graphs[0].graph_def
            functions = graph_def.library.function
            inside = functions[int(rng.integers(len(functions)))] if rng.random() < 0.5 else graph_def
            change(graph_def if inside is graph_def else _Body(inside), rng)
            if rng.random() < 0.3:
                _other_tensors(model.meta_graphs[0], rng)
            yield Mutant(f"SavedModel, {name}, number {index}", {**saved, PROTO: model.SerializeToString()})


class _Body:
    """A function, changed as a graph is."""

    def __init__(self, function: Any) -> None:
        self.node = function.node_def


def _one(graph: Any, rng: Random) -> Any:
    return graph.node[int(rng.integers(len(graph.node)))]


def drop_node(graph: Any, rng: Random) -> None:
    del graph.node[int(rng.integers(len(graph.node)))]


def double_node(graph: Any, rng: Random) -> None:
    graph.node.add().CopyFrom(_one(graph, rng))


def other_operation(graph: Any, rng: Random) -> None:
    _one(graph, rng).op = str(
        rng.choice(["Add", "NoOp", "MatMul", "PartitionedCall", "ReadFile", "VarHandleOp", "Reshape", "", "?"])
    )


def no_inputs(graph: Any, rng: Random) -> None:
    del _one(graph, rng).input[:]


def other_input(graph: Any, rng: Random) -> None:
    """Often a circle."""
    node = _one(graph, rng)
    source = str(rng.choice([_one(graph, rng).name, "^" + node.name, node.name + ":7", "nobody", ""]))
    if node.input and rng.random() < 0.5:
        node.input[int(rng.integers(len(node.input)))] = source
    else:
        node.input.append(source)


def other_name(graph: Any, rng: Random) -> None:
    _one(graph, rng).name = str(rng.choice([_one(graph, rng).name, "", "a b", "x" * 5000, "LEFT"]))


def other_type(graph: Any, rng: Random) -> None:
    for value in _one(graph, rng).attr.values():
        if value.WhichOneof("value") == "type":
            value.type = int(rng.integers(0, 140))


def other_shape(graph: Any, rng: Random) -> None:
    node = _one(graph, rng)
    shape = node.attr["shape"].shape
    del shape.dim[:]
    for size in rng.choice([-7, -1, 0, 1, 3, 2**31, 2**62], size=int(rng.integers(0, 5))):
        shape.dim.add().size = int(size)


def no_attributes(graph: Any, rng: Random) -> None:
    _one(graph, rng).attr.clear()


def a_constant(graph: Any, rng: Random) -> None:
    """A constant with more elements than it has content."""
    node = _one(graph, rng)
    node.op = "Const"
    del node.input[:]
    node.attr.clear()
    tensor = node.attr["value"].tensor
    node.attr["dtype"].type = tensor.dtype = 1
    tensor.tensor_content = rng.bytes(int(rng.integers(0, 16)))
    for size in rng.choice([0, 1, 3, 2**20, 2**40], size=2):
        tensor.tensor_shape.dim.add().size = int(size)


def a_device(graph: Any, rng: Random) -> None:
    _one(graph, rng).device = str(rng.choice(["/gpu:0", "/job:nobody/task:7/cpu:3", "nonsense", "/cpu:99"]))


def _other_tensors(meta_graph: Any, rng: Random) -> None:
    """The signature, or what restores the variables, names tensors that are not there."""
    signature = meta_graph.signature_def["serving_default"]
    side = signature.inputs if rng.random() < 0.5 else signature.outputs
    side[next(iter(side))].name = str(rng.choice(["nobody:0", "serving_default_LEFT", "", "serving_default_LEFT:9"]))
    if rng.random() < 0.3:
        meta_graph.saver_def.restore_op_name = "nobody"


CHANGES: Mapping[str, Callable[[Any, Random], None]] = {
    "a node less": drop_node,
    "a node twice": double_node,
    "another operation": other_operation,
    "no inputs": no_inputs,
    "another input": other_input,
    "another name": other_name,
    "another type": other_type,
    "another shape": other_shape,
    "no attributes": no_attributes,
    "a constant": a_constant,
    "a device": a_device,
}


def test_structures_can_be_broken_in_every_way() -> None:
    saved = {PROTO: (MODELS / "add_sub.savedmodel" / "saved_model.pb").read_bytes()}
    frozen = {GRAPHDEF_FILE: (MODELS / "add_sub.graphdef").read_bytes()}
    mutants = list(islice(broken_structures(saved, frozen), 200))
    unchanged = [mutant.name for mutant in mutants if mutant.files in (saved, frozen)]
    assert len(unchanged) < len(mutants) // 4, unchanged
