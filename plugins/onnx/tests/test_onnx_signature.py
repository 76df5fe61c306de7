from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.backend import Signature, TensorSpec, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.errors import ModelError, Unsupported
from moorage.testing import ModelCase
from moorage.types import DataType
from moorage_onnx.backend import OnnxBackend
from moorage_onnx.plugin import backends, discover_model

FP32 = DataType.FP32


def test_symbolic_sizes_are_open(load: Callable[..., Any]) -> None:
    assert load("conv").signature() == Signature(
        (TensorSpec("IMAGE", FP32, (-1, 1, -1, -1)),), (TensorSpec("BLURRED", FP32, (-1, 1, -1, -1)),)
    )


def test_every_type_is_known(load: Callable[..., Any]) -> None:
    specs = load("everything").signature().inputs
    assert {spec.name: spec.datatype for spec in specs} == {
        f"IN_{datatype.name}": datatype for datatype in DataType if datatype not in (DataType.INVALID, DataType.BF16)
    }


def test_a_scalar_is_told_from_an_unknown_rank(load: Callable[..., Any]) -> None:
    assert load("scalar").signature().inputs[0].shape == ()
    assert load("unranked").signature().inputs[0].shape is None


def test_a_sequence_is_refused_by_name(load: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match=r"model 'sequence': output 'LIST' has type seq\(tensor\(float\)\)"):
        load("sequence")


def test_a_type_without_a_name_in_requests_is_refused_by_name(load: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match=r"model 'float8': output 'Y' has type tensor\(float8e4m3fn\)"):
        load("float8")


def test_strings_beside_bf16_are_refused_at_load(load: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match=r"input 'S' is a string.*BF16"):
        load("strings_and_bf16")


def test_an_error_at_load_names_model_and_file(load: Callable[..., Any], models: Path) -> None:
    with pytest.raises(ModelError, match=r"model 'int4' version 1: ONNX Runtime cannot load .*model\.onnx: .*NOT_IMPLEMENTED"):
        load("int4")


def test_a_file_that_cannot_be_loaded_is_tried_once_and_in_silence(
    models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    content = (models / "add_sub.onnx").read_bytes().replace(b"LEFT", b"\xff\xfe\xff\xfe")
    case = ModelCase(models / "add_sub.onnx", ModelConfig(name="m"), "model.onnx")
    with pytest.raises(ModelError, match=r"model 'm' version 1: ONNX Runtime cannot load .*model\.onnx"):
        OnnxBackend().load(case.context(tmp_path, content=content))
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    "names, found",
    [
        ({"model.onnx"}, True),
        ({"model.onnx/model.onnx", "model.onnx/rows.bin"}, True),
        ({"other.onnx"}, False),
        ({"x/model.onnx"}, False),
    ],
)
def test_discovers_by_name(names: set[str], found: Any) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match is not None) == found
    if match:
        assert (match.backend, match.platform, match.default_model_filename) == (
            "onnxruntime",
            "onnxruntime_onnx",
            "model.onnx",
        )


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert (backend.name, backend.platforms) == ("onnxruntime", ("onnxruntime_onnx",))
