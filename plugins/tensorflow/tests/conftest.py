"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from moorage.backend import BatchInstance, LoadedModel, Placement
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage.testing import ModelCase
from moorage_tensorflow.backend import GRAPHDEF_FILE, SAVEDMODEL_FOLDER, TensorFlowBackend

MODELS = Path(__file__).parent / "models"
Load = Callable[..., LoadedModel]


@pytest.fixture
def models() -> Path:
    return MODELS


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load("conv.graphdef", TF_NUM_INTRA_THREADS="2")`: this model of models/, loaded with these parameters."""

    def load(
        name: str,
        config: ModelConfig | None = None,
        instances: int = 1,
        backend_config: dict[str, str] | None = None,
        **parameters: str,
    ) -> LoadedModel:
        source = MODELS / name
        given = evolve(config or ModelConfig(), name=source.stem)
        given = evolve(given, parameters={key: Parameter(value) for key, value in parameters.items()})
        target = SAVEDMODEL_FOLDER if source.is_dir() else GRAPHDEF_FILE
        case = ModelCase(source, given, target, backend_config or {})
        return TensorFlowBackend().load(case.context(tmp_path / name, instances=instances))

    return load


@pytest.fixture
def instance(load: Load) -> Callable[..., BatchInstance]:
    """As `load`, and an instance of the model on the CPU."""

    def instance(name: str, *args: Any, **settings: Any) -> BatchInstance:
        made = load(name, *args, **settings).instance(Placement(name, InstanceKind.KIND_CPU))
        assert isinstance(made, BatchInstance)
        return made

    return instance
