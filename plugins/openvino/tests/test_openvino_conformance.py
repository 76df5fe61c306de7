"""The suite that every backend must pass."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pytest

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import RequestError
from moorage.testing import BackendTests, ModelCase
from moorage.testing.corruption import Mutant, byte_mutants, run_mutants
from moorage.testing.model_case import Files
from moorage.types import DataType
from moorage_openvino.backend import OpenVinoBackend

MODELS = Path(__file__).parent / "models"
ATTRIBUTE = re.compile(rb'([\w-]+)="([^"]*)"')
ELEMENT = re.compile(rb"<(layer|port|edge|data|dim|output|input)\b.*?(/>|</\1>)", re.DOTALL)
VALUES = (b"", b"-1", b"0", b"1", b"99999999999999999999", b"4294967296", b"?", b"f16", b"i64", b"?,?", b"Add", b"\xff")


class TestOpenVinoBackend(BackendTests):
    backend = OpenVinoBackend

    def add_sub(self) -> ModelCase:
        config = ModelConfig(
            name="add_sub",
            max_batch_size=8,
            input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
            output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
        )
        return ModelCase(MODELS / "add_sub.xml", config, "model.xml")

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype) for datatype in DataType if datatype is not DataType.INVALID}

    def identity(self, datatype: DataType) -> ModelCase:
        config = ModelConfig(
            name="identity",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
        )
        return ModelCase(MODELS / f"identity_{datatype.name.lower()}.xml", config, "model.xml")

    def with_weights(self) -> ModelCase:
        config = ModelConfig(
            name="table",
            input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
            output=(ModelOutput("VALUES", DataType.FP32, (-1, 8)),),
        )
        return ModelCase(MODELS / "table.xml", config, "model.xml", beside={"model.bin": MODELS / "table.bin"})

    def formats(self) -> Mapping[str, ModelCase]:
        return {"model.xml": self.with_weights()}

    def mutants(self, kind: str, files: Files) -> Iterator[Mutant]:
        """Other values for attributes of the XML, elements left out or doubled."""
        content = files.get("model.xml", b"")
        rng = np.random.default_rng(7)
        attributes, elements = list(ATTRIBUTE.finditer(content)), list(ELEMENT.finditer(content))
        while content:
            found = attributes[int(rng.integers(len(attributes)))]
            value = VALUES[int(rng.integers(len(VALUES)))]
            yield self.changed(files, found.start(2), found.end(2), value, f"{found.group(1).decode()} is {value!r}")
            found = elements[int(rng.integers(len(elements)))]
            twice = bool(rng.integers(2))
            yield self.changed(files, *found.span(), found.group() * 2 * twice, "doubled" if twice else "left out")

    @staticmethod
    def changed(files: Files, begin: int, end: int, new: bytes, how: str) -> Mutant:
        content = files["model.xml"]
        return Mutant(f"model.xml at {begin}: {how}", {**files, "model.xml": content[:begin] + new + content[end:]})

    @pytest.mark.parametrize("datatype", [one for one in DataType if one is not DataType.INVALID], ids=lambda one: one.name)
    def test_carries_every_value_of_a_data_type(self, datatype: DataType, tmp_path: Path) -> None:
        """OpenVINO for Python cuts zero bytes off the ends of strings: such strings are refused, never changed."""
        if datatype is not DataType.BYTES:
            super().test_carries_every_value_of_a_data_type(datatype, tmp_path)
            return
        words = np.array([[b"", b"a\0b", "\u00e9 \u20ac".encode(), b"b'quoted'", b"x" * 5000]], dtype=object)
        with self.runner(self.identity(datatype), tmp_path) as runner:
            assert runner.one({"X": words})["Y"].tolist() == words.tolist()
            with pytest.raises(RequestError, match="model 'identity': input 'X': element 1 ends with a zero byte"):
                runner.one({"X": np.array([[b"fine", b"a\0"]], dtype=object)})


@pytest.mark.heavy
@pytest.mark.parametrize(
    "name, given, gives",
    [
        ("table.onnx", "ROW", "VALUES"),
        ("table.saved_model", "ROW", "VALUES"),
        ("table.tflite", "serving_default_ROW:0", "StatefulPartitionedCall:0"),
    ],
)
def test_broken_files_of_other_formats_are_answered_or_refused(name: str, given: str, gives: str) -> None:
    filename = f"model{Path(name).suffix}"
    config = ModelConfig(
        name="table",
        backend="openvino",
        default_model_filename=filename,
        input=(ModelInput(given, DataType.INT64, dims=(-1,)),),
        output=(ModelOutput(gives, DataType.FP32, (-1, 8)),),
    )
    case = ModelCase(MODELS / name, config, filename)
    report = run_mutants(case, "openvino", byte_mutants(case.files(), 60), open_config=True)
    assert not report.bad(), report.explain()
