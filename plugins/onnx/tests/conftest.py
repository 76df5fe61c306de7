"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from moorage.backend import BatchInstance, LoadedModel
from moorage.config.schema import ModelConfig, Parameter
from moorage.testing import ModelCase
from moorage_onnx.backend import OnnxBackend

MODELS = Path(__file__).parent / "models"
Load = Callable[..., LoadedModel]


@pytest.fixture
def models() -> Path:
    return MODELS


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load("conv", intra_op_thread_count="2")`: the model of this name in models/, loaded with these parameters."""

    def load(
        name: str,
        config: ModelConfig | None = None,
        instances: int = 1,
        backend_config: dict[str, str] | None = None,
        **parameters: str,
    ) -> LoadedModel:
        given = config or ModelConfig(name=name)
        given = evolve(given, parameters={key: Parameter(value) for key, value in parameters.items()})
        case = ModelCase(MODELS / f"{name}.onnx", given, "model.onnx", backend_config or {})
        return OnnxBackend().load(case.context(tmp_path / name, instances=instances))

    return load


@pytest.fixture
def instance(load: Load) -> Callable[..., BatchInstance]:
    """As `load`, and an instance of the model on the CPU."""
    from moorage.backend import Placement
    from moorage.config.schema import InstanceKind

    def instance(name: str, **settings: str) -> BatchInstance:
        made = load(name, **settings).instance(Placement(name, InstanceKind.KIND_CPU))
        assert isinstance(made, BatchInstance)
        return made

    return instance
