"""Files: what is read, what is missing, what belongs to another model."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.backend import LoadedModel, Placement
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ModelError, NotFound
from moorage.testing import ModelCase
from moorage.testing.corruption import run_harms
from moorage_openvino.backend import OpenVinoBackend
from moorage_openvino.checkpoint import check_variables
from moorage_openvino.weights import needed_bytes

ROWS = np.arange(1024 * 8, dtype=np.float32).reshape(1024, 8)


def load_files(models: Path, tmp_path: Path, **beside: Path) -> LoadedModel:
    """The table, with other files beside it: `bin=` is its model.bin."""
    files = {f"model.{ending}": path for ending, path in beside.items()}
    case = ModelCase(models / "table.xml", ModelConfig(name="table"), "model.xml", beside=files)
    return OpenVinoBackend().load(case.context(tmp_path))


def test_weights_are_used(instance: Callable[..., Any]) -> None:
    values = instance("table").run({"ROW": np.array([2, 1023])}, ["VALUES"])["VALUES"]
    np.testing.assert_array_equal(values, ROWS[[2, 1023]])


def test_missing_weights_are_named(models: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"model 'table': .*model\.xml needs its weights, but there is no file .*model\.bin"):
        load_files(models, tmp_path)


def test_weights_of_another_model_are_refused(models: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(1024 * 1024))
    with pytest.raises(
        ModelError, match=r"model 'table': .*model\.bin has 1048576 bytes.* take \d+: it belongs to another model"
    ):
        load_files(models, tmp_path, bin=other)


def test_weights_for_a_model_without_any_are_refused(models: Path, tmp_path: Path) -> None:
    case = ModelCase(models / "add_sub.xml", ModelConfig(name="m"), "model.xml", beside={"model.bin": models / "conv.bin"})
    assert OpenVinoBackend().load(case.context(tmp_path)).signature() is not None


def test_weights_that_are_not_whole_are_refused(models: Path, tmp_path: Path) -> None:
    short = tmp_path / "short.bin"
    short.write_bytes((models / "table.bin").read_bytes()[:-1])
    with pytest.raises(ModelError, match=r"model 'table': .*model\.bin has \d+ bytes.*it is not complete"):
        load_files(models, tmp_path, bin=short)


def test_counts_the_bytes_of_constants_inside_other_operations() -> None:
    xml = b"""<layer type="If"><body><data element_type="f32" offset="64" shape="2" size="8" /></body></layer>
        <data offset="0.5" min_size="9" size="4"/> <data size='7'/> <data offset="8" size="16"/>"""
    assert needed_bytes(xml) == 72
    assert needed_bytes(b"<net/>") == 0


@pytest.mark.parametrize("name", ["table.onnx", "table.saved_model", "table.tflite"])
def test_reads_other_formats_and_keeps_them(name: str, models: Path, tmp_path: Path) -> None:
    filename = f"model{Path(name).suffix}"
    context = ModelCase(models / name, ModelConfig(name="table"), filename).context(tmp_path)
    model = OpenVinoBackend().load(context)
    declared = model.signature()
    assert declared is not None
    made = model.instance(Placement("table", InstanceKind.KIND_CPU))
    for path in context.version_path.rglob("*"):
        if path.is_file():
            os.truncate(path, 0)
    (source,), (target,) = declared.inputs, declared.outputs
    values = made.run({source.name: np.array([2, 1023])}, [target.name])[target.name]  # type: ignore[union-attr]
    np.testing.assert_array_equal(values, ROWS[[2, 1023]])


@pytest.mark.parametrize("harm", ["cut", "flip", "tail", "empty", "middle"])
def test_a_damaged_index_of_variables_is_refused(harm: str, models: Path, tmp_path: Path) -> None:
    """OpenVINO would end the process."""
    case = ModelCase(models / "table.saved_model", ModelConfig(name="table"), "model.saved_model")
    context = case.context(tmp_path)
    index = context.model_file / "variables" / "variables.index"
    content = index.read_bytes()
    flipped = content[:20] + bytes([content[20] ^ 4]) + content[21:]
    index.write_bytes(
        {
            "cut": content[:-10],
            "flip": flipped,
            "tail": content + b"x",
            "empty": b"",
            "middle": content[:40] + content[60:],
        }[harm]
    )
    with pytest.raises(ModelError, match=r"model 'table': .*variables\.index is damaged"):
        OpenVinoBackend().load(context)


@pytest.mark.parametrize("cut", range(0, 400, 7))
def test_looking_into_a_damaged_index_raises_nothing_else(cut: int, models: Path, tmp_path: Path) -> None:
    content = (models / "table.saved_model" / "variables" / "variables.index").read_bytes()
    (tmp_path / "variables").mkdir()
    changed = content[:cut] + b"\xff" * 9 + content[cut + 9 :]
    (tmp_path / "variables" / "variables.index").write_bytes(changed)
    with suppress(ModelError):  # a few bytes of the end are filling
        check_variables("m", tmp_path)


def test_harm_to_the_weights_of_an_onnx_model_does_not_reach_it(models: Path) -> None:
    from moorage.config.schema import ModelInput, ModelOutput
    from moorage.types import DataType

    config = ModelConfig(
        name="table",
        backend="openvino",
        default_model_filename="model.onnx",
        input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
        output=(ModelOutput("VALUES", DataType.FP32, (-1, 8)),),
    )
    report = run_harms(ModelCase(models / "table.onnx", config, "model.onnx", main="model.onnx"), "openvino")
    assert not report.bad(), report.explain()


def test_weights_outside_the_folder_are_refused(models: Path, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    content = (models / "table.onnx" / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(content.replace(b"rows.bin", b"../x.bin"))
    context = ModelCase(folder, ModelConfig(name="table"), "model.onnx").context(tmp_path / "repository")
    (context.version_path / "x.bin").write_bytes((models / "table.onnx" / "rows.bin").read_bytes())
    with pytest.raises(ModelError, match=r"model 'table' version 1: OpenVINO cannot load .*outside"):
        OpenVinoBackend().load(context)


def test_an_input_that_can_hold_nothing_is_refused(models: Path, tmp_path: Path) -> None:
    """OpenVINO would end the process."""
    content = (models / "table.xml").read_bytes().replace(b'shape="?"', b'shape="0"')
    case = ModelCase(models / "table.xml", ModelConfig(name="m"), "model.xml", beside={"model.bin": models / "table.bin"})
    with pytest.raises(ModelError, match=r"model 'm'.*: input 'ROW' of shape \[0\] can hold nothing"):
        OpenVinoBackend().load(case.context(tmp_path, content=content))


@pytest.mark.parametrize("content", [b"", b"<net>", b"\x00\xff" * 40, b"<?xml version='1.0'?><net name='x' version='11'/>"])
def test_what_is_no_model_is_an_error_that_names_the_file(content: bytes, models: Path, tmp_path: Path) -> None:
    context = ModelCase(models / "add_sub.xml", ModelConfig(name="m"), "model.xml").context(tmp_path, content=content)
    with pytest.raises(ModelError, match=r"model 'm' version 1: .*model\.xml(: \w| describes no outputs)"):
        OpenVinoBackend().load(context)
