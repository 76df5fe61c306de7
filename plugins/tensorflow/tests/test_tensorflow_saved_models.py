from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format

from moorage.backend import Placement, Signature, TensorSpec
from moorage.config.schema import InstanceKind, ModelConfig, ModelInput, Parameter
from moorage.errors import ConfigError, ModelError, NotFound, Unsupported
from moorage.testing import ModelCase
from moorage.types import DataType
from moorage_tensorflow.backend import SAVEDMODEL_FOLDER, TensorFlowBackend
from moorage_tensorflow.runtime import import_runtime

FP32, INT32 = DataType.FP32, DataType.INT32
ONES = np.ones((1, 3), np.float32)


def edited(source: Path, target: Path, edit: Callable[[Any], object], *, text: bool = False) -> Path:
    """A copy of a SavedModel whose message was changed; `text` writes it in text form."""
    shutil.copytree(source, target)
    file = target / "saved_model.pb"
    message = import_runtime("tests").saved_model.SavedModel.FromString(file.read_bytes())
    edit(message)
    file.unlink()
    if text:
        (target / "saved_model.pbtxt").write_text(text_format.MessageToString(message))
    else:
        file.write_bytes(message.SerializeToString())
    return target


def load_folder(folder: Path, repository: Path, config: ModelConfig | None = None) -> Any:
    return TensorFlowBackend().load(ModelCase(folder, config or ModelConfig(name="m"), SAVEDMODEL_FOLDER).context(repository))


def test_the_default_signature_is_served(load: Callable[..., Any]) -> None:
    spec = (-1, 3)
    assert load("doubler.savedmodel").signature() == Signature((TensorSpec("X", FP32, spec),), (TensorSpec("Y", FP32, spec),))


def test_variables_are_restored(instance: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(instance("doubler.savedmodel").run({"X": ONES}, ["Y"])["Y"], ONES * 2)


def test_another_signature_is_served_by_its_name(load: Callable[..., Any], instance: Callable[..., Any]) -> None:
    assert load("doubler.savedmodel", TF_SIGNATURE_DEF="other").signature() == Signature(
        (TensorSpec("A", INT32, (-1,)), TensorSpec("B", INT32, None)), (TensorSpec("SUM", INT32, (1,)),)
    )


def test_a_tensor_of_unknown_rank_takes_any(instance: Callable[..., Any]) -> None:
    made = instance("doubler.savedmodel", TF_SIGNATURE_DEF="other")
    for shape in ((), (2,), (2, 2, 1)):
        result = made.run({"A": np.ones(3, np.int32), "B": np.ones(shape, np.int32)}, ["SUM"])["SUM"]
        assert result.tolist() == [3 + np.ones(shape).sum()]


@pytest.mark.parametrize(
    "name, parameters, words",
    [
        ("doubler", {"TF_SIGNATURE_DEF": "third"}, r"parameters\.TF_SIGNATURE_DEF: .*'third'.*it has: other, serving_default"),
        ("doubler", {"TF_GRAPH_TAG": "train"}, r"parameters\.TF_GRAPH_TAG: .*'train'.*it has: serve"),
        ("old_style", {}, r"TF_GRAPH_TAG: .*'serve'.*it has: mine"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(load: Callable[..., Any], name: str, parameters: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"model '{name}'.*{words}"):
        load(f"{name}.savedmodel", **parameters)


def test_tags_may_be_several_in_any_order(models: Path, tmp_path: Path) -> None:
    folder = edited(models / "doubler.savedmodel", tmp_path / "m", lambda m: m.meta_graphs[0].meta_info_def.tags.append("gpu"))
    with pytest.raises(ConfigError, match="it has: serve,gpu"):
        load_folder(folder, tmp_path / "a")
    config = ModelConfig(name="m", parameters={"TF_GRAPH_TAG": Parameter("gpu, serve")})
    assert load_folder(folder, tmp_path / "b", config).signature().inputs


def test_models_of_tensorflow_1_are_served(instance: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    made = instance("old_style.savedmodel", TF_GRAPH_TAG="mine")
    assert "no signature 'serving_default'; using 'predict'" in caplog.text
    np.testing.assert_array_equal(made.run({"in": np.array([[1, 2]], np.float32)}, ["out"])["out"], [[21]])


def test_of_several_signatures_the_configuration_tells_which(models: Path, tmp_path: Path) -> None:
    def rename(message: Any) -> None:
        signatures = message.meta_graphs[0].signature_def
        signatures["double"].CopyFrom(signatures["serving_default"])
        del signatures["serving_default"]

    folder = edited(models / "doubler.savedmodel", tmp_path / "m", rename)
    with pytest.raises(ConfigError, match=r"TF_SIGNATURE_DEF: .*it has: double, other"):
        load_folder(folder, tmp_path / "a")
    made = load_folder(folder, tmp_path / "b", ModelConfig(name="m", input=(ModelInput("X", FP32, dims=(3,)),)))
    assert [spec.name for spec in made.signature().inputs] == ["X"]


def test_a_model_without_signatures_is_told_how_to_be_exported(models: Path, tmp_path: Path) -> None:
    def clear(message: Any) -> None:
        for name in ("serving_default", "other"):
            del message.meta_graphs[0].signature_def[name]

    with pytest.raises(ConfigError, match=r"it has none: export it with signatures="):
        load_folder(edited(models / "doubler.savedmodel", tmp_path / "m", clear), tmp_path / "a")


def test_tables_are_filled_from_assets(instance: Callable[..., Any]) -> None:
    words = np.array([[b"two"], [b"zero"], [b"unknown"]], dtype=object)
    results = instance("words.savedmodel").run({"WORD": words}, ["AGAIN", "NUMBER"])
    np.testing.assert_array_equal(results["NUMBER"], [[2], [0], [3]])
    np.testing.assert_array_equal(results["AGAIN"], words)


def test_what_keras_exports_is_served(load: Callable[..., Any], instance: Callable[..., Any]) -> None:
    assert load("keras.savedmodel").signature().inputs == (TensorSpec("features", FP32, (-1, 4)),)
    (scores,) = instance("keras.savedmodel").run({"features": np.ones((2, 4), np.float32)}, ["output_0"]).values()
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)


def test_the_text_form_is_read(models: Path, tmp_path: Path) -> None:
    folder = edited(models / "doubler.savedmodel", tmp_path / "m", lambda _: None, text=True)
    assert load_folder(folder, tmp_path / "a").signature().outputs


def test_a_type_that_requests_cannot_carry_is_refused_by_name(load: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match="model 'odd': input 'Z' has type complex64"):
        load("odd.savedmodel")


def test_a_composite_tensor_is_refused_by_name(models: Path, tmp_path: Path) -> None:
    def make_sparse(message: Any) -> None:
        message.meta_graphs[0].signature_def["serving_default"].inputs["X"].coo_sparse.values_tensor_name = "a:0"

    with pytest.raises(Unsupported, match="model 'm': input 'X' is a sparse or composite tensor"):
        load_folder(edited(models / "doubler.savedmodel", tmp_path / "m", make_sparse), tmp_path / "a")


def test_an_input_that_is_an_output_comes_back(models: Path, tmp_path: Path) -> None:
    def add(message: Any) -> None:
        signature = message.meta_graphs[0].signature_def["serving_default"]
        signature.outputs["SAME"].CopyFrom(signature.inputs["X"])

    made = load_folder(edited(models / "doubler.savedmodel", tmp_path / "m", add), tmp_path / "a")
    results = made.instance(Placement("m", InstanceKind.KIND_CPU)).run({"X": ONES}, ["SAME", "Y"])
    np.testing.assert_array_equal(results["SAME"] * 2, results["Y"])


def test_a_folder_too_deep_is_told_where_it_is(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "doubler.savedmodel", tmp_path / "m" / "inner")
    with pytest.raises(NotFound, match=r"model 'm' version 1: .*holds no saved_model\.pb; it is in .*inner: move"):
        load_folder(tmp_path / "m", tmp_path / "a")


def test_missing_variables_are_named(models: Path, tmp_path: Path) -> None:
    shutil.copytree(models / "doubler.savedmodel", tmp_path / "m")
    shutil.rmtree(tmp_path / "m" / "variables")
    with pytest.raises(ModelError, match=r"model 'm' version 1: TensorFlow cannot load .*variables"):
        load_folder(tmp_path / "m", tmp_path / "a")


def test_a_model_without_graphs_is_refused(models: Path, tmp_path: Path) -> None:
    folder = edited(models / "doubler.savedmodel", tmp_path / "m", lambda message: message.ClearField("meta_graphs"))
    with pytest.raises(ModelError, match=r"model 'm' version 1: .* holds no graph"):
        load_folder(folder, tmp_path / "a")
