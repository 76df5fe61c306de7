from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moorage.backend import Signature, TensorSpec
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput, Parameter
from moorage.errors import ConfigError, ModelError, NotFound, RequestError
from moorage.server import Server
from moorage.testing import ModelCase, RepositoryBuilder
from moorage.types import DataType
from moorage_tensorflow.backend import GRAPHDEF, GRAPHDEF_FILE, TensorFlowBackend

FP32 = DataType.FP32
ROW = np.arange(4, dtype=np.float32).reshape(1, 4)


def config(*names: str, outputs: tuple[str, ...] = (), batch: int = 0, dims: tuple[int, ...] = (-1, 4)) -> ModelConfig:
    return ModelConfig(
        max_batch_size=batch,
        input=tuple(ModelInput(name, FP32, dims=dims) for name in names),
        output=tuple(ModelOutput(name, FP32, (-1, -1)) for name in outputs),
    )


def names(model: Any) -> tuple[list[str], list[str]]:
    signature = model.signature()
    return [spec.name for spec in signature.inputs], [spec.name for spec in signature.outputs]


def load_bytes(content: bytes, tmp_path: Path) -> Any:
    (tmp_path / "graph").write_bytes(content)
    return TensorFlowBackend().load(
        ModelCase(tmp_path / "graph", ModelConfig(name="m"), GRAPHDEF_FILE).context(tmp_path / "repository")
    )


def test_placeholders_go_in_and_ends_come_out(load: Callable[..., Any]) -> None:
    left, right, total, gap = (TensorSpec(name, FP32, (-1, 3)) for name in ("LEFT", "RIGHT", "TOTAL", "GAP"))
    assert load("add_sub.graphdef").signature() == Signature((left, right), (total, gap))


def test_a_node_with_several_outputs_gives_all(load: Callable[..., Any]) -> None:
    assert names(load("many.graphdef")) == (["ONE", "OTHER"], ["HALVES", "HALVES:1", "SUM"])


def test_the_configuration_chooses_the_outputs_and_so_the_inputs(load: Callable[..., Any]) -> None:
    assert names(load("many.graphdef", config("ONE", outputs=("HALVES:1",)))) == (["ONE"], ["HALVES:1"])
    assert names(load("many.graphdef", config(outputs=("SUM",)))) == (["ONE", "OTHER"], ["SUM"])


def test_any_node_can_be_an_output(load: Callable[..., Any]) -> None:
    assert names(load("conv.graphdef", config(outputs=("Const",)))) == ([], ["Const"])


def test_an_input_that_is_not_needed_may_be_listed(instance: Callable[..., Any]) -> None:
    made = instance("many.graphdef", config("ONE", "OTHER", outputs=("HALVES",)))
    np.testing.assert_array_equal(made.run({"ONE": ROW, "OTHER": ROW}, ["HALVES"])["HALVES"], ROW[:, :2])


def test_one_output_is_computed_alone(instance: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(
        instance("many.graphdef").run({"ONE": ROW, "OTHER": ROW}, ["HALVES:1"])["HALVES:1"], ROW[:, 2:]
    )


def test_a_fixed_first_size_is_no_obstacle_to_batches(load: Callable[..., Any]) -> None:
    """Graphs are often frozen with a batch of 1, which their operations do not mind."""
    assert load("fixed_batch.graphdef").signature().inputs[0].shape == (1, 2)
    batching = load("fixed_batch.graphdef", config("X", outputs=("Y",), batch=8, dims=(2,)))
    assert batching.signature().inputs[0].shape == (-1, 2)


def test_an_unknown_rank_is_known_to_be_unknown(load: Callable[..., Any]) -> None:
    assert load("unranked.graphdef").signature().inputs[0].shape is None


def test_an_input_with_a_default_may_be_left_out(instance: Callable[..., Any]) -> None:
    x = np.ones((1, 2), np.float32)
    made = instance("scaled.graphdef", config("X", "FACTOR", outputs=("Y",)))
    assert made.run({"X": x}, ["Y"])["Y"].tolist() == [[2, 2]]
    assert made.run({"X": x, "FACTOR": np.array([5], np.float32)}, ["Y"])["Y"].tolist() == [[5, 5]]
    with pytest.raises(RequestError, match="model 'scaled': input 'X' is missing"):
        made.run({"FACTOR": np.array([5], np.float32)}, ["Y"])


def test_a_tensor_without_dimensions_has_one_element(instance: Callable[..., Any]) -> None:
    word = np.array([b"a\0"], dtype=object)
    result = instance("scalar_bytes.graphdef").run({"X": word}, ["Y"])["Y"]
    assert (result.shape, result.dtype, result.tolist()) == ((1,), np.dtype(object), [b"a\0"])
    result = instance("scalar_bf16.graphdef").run({"X": np.array([1.5]).astype(ml_dtypes.bfloat16)}, ["Y"])["Y"]
    assert (result.shape, result.dtype, float(result[0])) == ((1,), ml_dtypes.bfloat16, 1.5)


def test_a_tensor_that_turns_out_to_have_no_dimensions_is_an_array(instance: Callable[..., Any]) -> None:
    result = instance("unranked.graphdef").run({"X": np.array(2, np.float32)}, ["Y"])["Y"]
    assert isinstance(result, np.ndarray)
    assert (result.shape, result.item()) == ((), 2)


def test_an_input_with_a_default_need_not_be_listed(load: Callable[..., Any]) -> None:
    assert names(load("scaled.graphdef")) == (["X"], ["Y"])


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "no node; write a frozen graph in binary form"),
        (b"\x00\x01nonsense" * 9, "is no GraphDef"),
        (b'node { name: "X" op: "Placeholder" }', "it is in text form"),
    ],
)
def test_what_is_no_graph_is_refused_with_advice(content: bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=f"model 'm' version 1: .*{words}"):
        load_bytes(content, tmp_path)


def test_a_saved_model_s_file_is_recognised(models: Path, tmp_path: Path) -> None:
    content = (models / "doubler.savedmodel" / "saved_model.pb").read_bytes()
    with pytest.raises(ModelError, match=r"model 'm'.* it is a SavedModel: put its folder .* as model\.savedmodel"):
        load_bytes(content, tmp_path)


def test_an_unknown_operation_is_told_where_it_may_come_from(models: Path, tmp_path: Path) -> None:
    content = (models / "identity_fp32.graphdef").read_bytes().replace(b"Identity", b"Idontity")
    with pytest.raises(ModelError, match=r"model 'm'.*Idontity.*op_library_filename"):
        load_bytes(content, tmp_path)


def test_a_folder_is_no_graph(models: Path, tmp_path: Path) -> None:
    case = ModelCase(models / "doubler.savedmodel", ModelConfig(name="m", platform=GRAPHDEF), GRAPHDEF_FILE)
    with pytest.raises(ModelError, match=r'model \'m\': .* is a folder.*write platform: "tensorflow_savedmodel"'):
        TensorFlowBackend().load(case.context(tmp_path))


def test_an_absent_file_is_named(models: Path, tmp_path: Path) -> None:
    context = ModelCase(models / "conv.graphdef", ModelConfig(name="m"), GRAPHDEF_FILE).context(tmp_path, files={})
    with pytest.raises(NotFound, match=r"model 'm' version 1: there is no .*model\.graphdef"):
        TensorFlowBackend().load(context)


@pytest.mark.parametrize("file", ["", "missing.json"])
def test_variables_need_to_be_initialised(file: str, models: Path, tmp_path: Path, instance: Callable[..., Any]) -> None:
    if file:
        with pytest.raises(
            ConfigError, match=r"model 'counter': parameters\.TF_INIT_OPS_FILE: there is no file 'missing\.json'"
        ):
            instance("counter.graphdef", TF_INIT_OPS_FILE=file)
        return
    with pytest.raises(ModelError, match=r"model 'counter': .*uninitialized.*TF_INIT_OPS_FILE"):
        instance("counter.graphdef").run({"STEP": np.ones(1, np.float32)}, ["SUM"])


@pytest.mark.parametrize("place", ["1/init.json", "init.json"])
def test_operations_initialise_them(place: str, models: Path, tmp_path: Path) -> None:
    config = """
        instance_group { kind: KIND_CPU count: 1 }
        parameters { key: "TF_INIT_OPS_FILE" value { string_value: "init.json" } }
    """
    files: dict[str, Any] = {"1/model.graphdef": models / "counter.graphdef", place: '{"init_ops": ["init"]}'}
    RepositoryBuilder(tmp_path).add("counter", files, config=config)
    with Server(model_repository=tmp_path) as server:
        sums = [server.infer("counter", {"STEP": np.ones(1, np.float32)})["SUM"].item() for _ in range(3)]
    assert sums == [101, 102, 103]


@pytest.mark.parametrize("text", ["{}", "[]", "no JSON", '{"init_ops": [1]}'])
def test_a_file_without_operations_is_refused(text: str, models: Path, tmp_path: Path) -> None:
    given = ModelConfig(name="counter", parameters={"TF_INIT_OPS_FILE": Parameter("init.json")})
    context = ModelCase(models / "counter.graphdef", given, GRAPHDEF_FILE).context(tmp_path)
    (context.model_path / "init.json").write_text(text)
    with pytest.raises(ConfigError, match=r"model 'counter': .*init\.json: it names no operations"):
        TensorFlowBackend().load(context)
