"""The suite that every backend must pass, on simulated GPUs.

Without the tests of broken files: they use processes of their own, in which nothing is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve
from simulated_gpus import Simulation, add_sub, identity

from moorage.backend import LoadContext, LoadedModel
from moorage.config.schema import InstanceGroup, InstanceKind, ModelConfig, ModelInput, ModelOutput
from moorage.errors import InvalidArgument
from moorage.server import Server
from moorage.testing import ModelCase, RepositoryBuilder
from moorage.testing.backend_suite.datatypes import DataTypeTests
from moorage.testing.backend_suite.loading import LoadingTests
from moorage.testing.backend_suite.running import RunningTests
from moorage.types import DataType
from moorage_tensorrt.backend import TensorRtBackend

TYPES = {
    DataType.FP32: "FLOAT",
    DataType.FP16: "HALF",
    DataType.BF16: "BF16",
    DataType.INT8: "INT8",
    DataType.UINT8: "UINT8",
    DataType.INT32: "INT32",
    DataType.INT64: "INT64",
    DataType.BOOL: "BOOL",
}
ON_GPUS = (InstanceGroup(kind=InstanceKind.KIND_GPU, count=2, gpus=(0, 1)),)


class OnGpuBackend(TensorRtBackend):
    """Runs on GPUs what the suite places on the CPU."""

    def load(self, context: LoadContext) -> LoadedModel:
        places = tuple(evolve(place, kind=InstanceKind.KIND_GPU) for place in context.placements)
        return super().load(evolve(context, placements=places))


class TestTensorRtBackend(LoadingTests, RunningTests, DataTypeTests):
    backend = OnGpuBackend

    @pytest.fixture(autouse=True)
    def machine(
        self, simulation: Simulation, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        monkeypatch.setattr("moorage._app.wiring.gpus", lambda: (0, 1))
        self.folder = tmp_path_factory.mktemp("plans")

    def add_sub(self) -> ModelCase:
        config = ModelConfig(
            name="add_sub",
            max_batch_size=8,
            input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
            output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
            instance_group=ON_GPUS,
        )
        return ModelCase(self.file("add_sub", add_sub()), config, "model.plan")

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype, kind) for datatype, kind in TYPES.items()}

    def identity(self, datatype: DataType, kind: str) -> ModelCase:
        config = ModelConfig(
            name="identity",
            max_batch_size=8,
            input=(ModelInput("X", datatype, dims=(-1,)),),
            output=(ModelOutput("Y", datatype, (-1,)),),
            instance_group=ON_GPUS,
        )
        return ModelCase(self.file(kind, identity(kind)), config, "model.plan")

    def file(self, name: str, content: bytes) -> Path:
        path = self.folder / f"{name}.plan"
        path.write_bytes(content)
        return path


def test_a_batch_size_over_that_of_the_plan_is_refused(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("moorage._app.wiring.gpus", lambda: (0,))
    repository = RepositoryBuilder(tmp_path / "models")
    repository.add("adder", {"1/model.plan": add_sub(most=8)}, config="max_batch_size: 9")
    with Server(model_repository=repository.path, model_control_mode="explicit") as server:
        with pytest.raises(InvalidArgument, match="max_batch_size: it is 9, but the model takes batches of at most 8"):
            server.load("adder")
        repository.add("adder", {}, config="dynamic_batching {}")
        server.load("adder")
        assert server.config("adder").max_batch_size == 8


def test_each_gpu_is_given_the_plan_for_its_compute_capability(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("moorage._app.wiring.gpus", lambda: (0, 1))
    monkeypatch.setattr("moorage._execution.loading.compute_capability", {0: "7.5", 1: "9.0"}.get)
    repository = RepositoryBuilder(tmp_path / "models")
    config = 'platform: "tensorrt_plan" cc_model_filenames { key: "9.0" value: "hopper.plan" }'
    files = {"1/model.plan": add_sub(made_for="any"), "1/hopper.plan": add_sub(made_for="hopper")}
    repository.add("adder", files, config=config)
    with Server(model_repository=repository.path, model_control_mode="explicit") as server:
        server.load("adder")
        assert [(one["device"], one["made_for"]) for one in simulation.trt.engines] == [(0, "any"), (1, "hopper")]
