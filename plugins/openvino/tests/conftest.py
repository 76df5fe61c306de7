"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from moorage.backend import BatchInstance, LoadedModel, Placement
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage.testing import ModelCase
from moorage_openvino.backend import OpenVinoBackend

MODELS = Path(__file__).parent / "models"
Load = Callable[..., LoadedModel]


def case_of(name: str, config: ModelConfig, backend_config: dict[str, str] | None = None) -> ModelCase:
    """The model of this name in models/, with its weights if it has any."""
    weights = MODELS / f"{name}.bin"
    beside = {"model.bin": weights} if weights.exists() else {}
    return ModelCase(MODELS / f"{name}.xml", config, "model.xml", backend_config or {}, beside)


@pytest.fixture
def models() -> Path:
    return MODELS


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load("conv", NUM_STREAMS="2")`: the model of this name in models/, loaded with these parameters."""

    def load(
        name: str,
        config: ModelConfig | None = None,
        instances: int = 1,
        backend_config: dict[str, str] | None = None,
        **parameters: str,
    ) -> LoadedModel:
        given = config or ModelConfig(name=name)
        given = evolve(given, name=name, parameters={key: Parameter(value) for key, value in parameters.items()})
        context = case_of(name, given, backend_config).context(tmp_path, instances=instances)
        return OpenVinoBackend().load(context)

    return load


@pytest.fixture
def instance(load: Load) -> Callable[..., BatchInstance]:
    """As `load`, and an instance of the model."""

    def instance(name: str, config: ModelConfig | None = None, **settings: str) -> BatchInstance:
        made = load(name, config, **settings).instance(Placement(name, InstanceKind.KIND_CPU))
        assert isinstance(made, BatchInstance)
        return made

    return instance
