"""The suite that every backend must pass."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.testing import BackendTests, ModelCase
from moorage.types import DataType
from moorage_python.backend import PythonBackend

MODELS = Path(__file__).parent / "models"


class TestPythonBackend(BackendTests):
    backend = PythonBackend
    completes = False

    def add_sub(self) -> ModelCase:
        config = ModelConfig(
            name="add_sub",
            backend="python",
            max_batch_size=8,
            input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
            output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
        )
        return ModelCase(MODELS / "add_sub.py", config, "model.py")

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype) for datatype in DataType if datatype is not DataType.INVALID}

    def identity(self, datatype: DataType) -> ModelCase:
        config = ModelConfig(
            name="identity",
            backend="python",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
        )
        return ModelCase(MODELS / "identity.py", config, "model.py")

    def test_a_configuration_without_tensors_is_refused_if_the_file_cannot_tell(self, tmp_path: Path) -> None:
        """It is not: a model of this backend may do without inputs and outputs."""
        case = self.add_sub()
        case.put(tmp_path)
        with self.served(tmp_path) as server:
            server.load(case.name)
            assert server.config(case.name).input == ()

    def corruptions(self, content: bytes) -> Mapping[str, bytes]:
        return {**super().corruptions(content), "truncated": content[: content.rindex(b"(") + 1]}
