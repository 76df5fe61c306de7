from __future__ import annotations

import importlib.util
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.backend import LoadContext, Placement
from moorage.config.schema import InstanceKind, ModelConfig, ModelOperations
from moorage.errors import ConfigError, ModelError
from moorage.testing import ModelCase
from moorage_onnx.backend import OnnxBackend

# A library as ONNX Runtime wants it, but without any operator: it tells a file that it was asked for some.
SOURCE = """
#include <stdio.h>
void *RegisterCustomOps(void *options, const void *api) {
    FILE *file = fopen("%s", "a");
    fputs("asked\\n", file);
    fclose(file);
    return 0;
}
"""
ON_CPU = Placement("m", InstanceKind.KIND_CPU)
Context = Callable[..., LoadContext]


@pytest.fixture
def told(tmp_path: Path) -> Path:
    """Where the library tells that it was asked."""
    return tmp_path / "told"


@pytest.fixture
def library(tmp_path: Path, told: Path) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    source = tmp_path / "operators.c"
    source.write_text(SOURCE % told)
    target = tmp_path / "libmine.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", target, source], check=True)
    return target


@pytest.fixture
def context(models: Path, tmp_path: Path) -> Context:
    def context(name: str, **more: Any) -> LoadContext:
        config = ModelConfig(name="add_sub", model_operations=ModelOperations(op_library_filename=(name,)))
        return ModelCase(models / "add_sub.onnx", config, "model.onnx").context(tmp_path / "repository", **more)

    return context


def runs(model: Any) -> None:
    one = np.ones((1, 3), np.float32)
    assert model.instance(ON_CPU).run({"LEFT": one, "RIGHT": one}, ["TOTAL"])["TOTAL"].sum() == 6


def test_a_library_is_registered_by_its_path(context: Context, library: Path, told: Path) -> None:
    runs(OnnxBackend().load(context(str(library))))
    assert told.read_text() == "asked\n"


@pytest.mark.parametrize("folder", ["version_path", "model_path"])
def test_a_library_is_found_in_the_model_s_folders(folder: str, context: Context, library: Path, told: Path) -> None:
    where = context("libmine.so")
    shutil.copy(library, getattr(where, folder))
    runs(OnnxBackend().load(where))
    assert told.exists()


def test_a_library_in_the_repository_may_be_replaced_while_it_is_used(context: Context, library: Path) -> None:
    where = context("libmine.so")
    inside = Path(shutil.copy(library, where.version_path))
    model = OnnxBackend().load(where)
    inside.write_bytes(bytes(inside.stat().st_size))
    runs(model)


def test_a_library_that_is_not_there_is_a_config_error(context: Context) -> None:
    with pytest.raises(ConfigError, match=r"model 'add_sub': model_operations\.op_library_filename\[0\]: .*'libnone\.so'"):
        OnnxBackend().load(context("libnone.so"))


def test_a_file_that_is_no_library_is_named(context: Context) -> None:
    where = context("libtext.so")
    (where.version_path / "libtext.so").write_text("not a library")
    with pytest.raises(
        ModelError, match=r"model 'add_sub': the operator library libtext\.so cannot be loaded.*RegisterCustomOps"
    ):
        OnnxBackend().load(where)


def test_operators_of_a_library_work(tmp_path: Path) -> None:
    """With a library that people use, if it is installed."""
    package = importlib.util.find_spec("onnxruntime_extensions")
    if package is None or package.origin is None:
        pytest.skip("onnxruntime-extensions is not installed")
    (library,) = Path(package.origin).parent.glob("_extensions_pydll*.so")
    from onnx import TensorProto, helper

    node = helper.make_node("StringUpper", ["X"], ["Y"], domain="ai.onnx.contrib")
    values = [helper.make_tensor_value_info(name, TensorProto.STRING, ["n"]) for name in ("X", "Y")]
    graph = helper.make_graph([node], "upper", values[:1], values[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.contrib", 1)]
    file = tmp_path / "upper.onnx"
    file.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    operations = ModelOperations(op_library_filename=(str(library),))
    where = ModelCase(file, ModelConfig(name="upper", model_operations=operations), "model.onnx").context(
        tmp_path / "repository"
    )
    words = np.array([b"moorage"], dtype=object)
    model: Any = OnnxBackend().load(where)
    assert model.instance(ON_CPU).run({"X": words}, ["Y"])["Y"].tolist() == [b"MOORAGE"]
