"""The suite that every backend must pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.testing import BackendTests, ModelCase
from moorage.types import DataType
from moorage_onnx.backend import OnnxBackend

MODELS = Path(__file__).parent / "models"


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

    def identity(self, datatype: DataType) -> ModelCase:
        config = ModelConfig(
            name="identity",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
        )
        return ModelCase(MODELS / f"identity_{datatype.name.lower()}.onnx", config, "model.onnx")
