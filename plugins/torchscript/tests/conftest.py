"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from moorage.backend import BatchInstance, LoadedModel, Placement
from moorage.config import parse_text
from moorage.config.schema import InstanceKind, Parameter
from moorage.testing import ModelCase
from moorage_torchscript.backend import TorchBackend

MODELS = Path(__file__).parent / "models"
Load = Callable[..., LoadedModel]
Start = Callable[..., BatchInstance]


@pytest.fixture
def models() -> Path:
    return MODELS


@pytest.fixture
def place() -> Placement:
    """The CPU."""
    return Placement("instance", InstanceKind.KIND_CPU)


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """`load("blur.pt", "input [...]", INFERENCE_MODE="false")`: a file in models/, loaded with a configuration."""

    def load(
        file: str, text: str = "", *, instances: int = 1, backend_config: dict[str, str] | None = None, **parameters: str
    ) -> LoadedModel:
        name = Path(file).stem
        given = parse_text(text).config
        own = {key: Parameter(value) for key, value in parameters.items()}
        given = evolve(given, name=name, parameters={**given.parameters, **own})
        case = ModelCase(MODELS / file, given, f"model{Path(file).suffix}", backend_config or {})
        return TorchBackend().load(case.context(tmp_path / f"{len(list(tmp_path.iterdir()))}", instances=instances))

    return load


@pytest.fixture
def instance(load: Load) -> Start:
    """As `load`, and an instance of the model on the CPU."""

    def instance(file: str, text: str = "", **settings: str) -> BatchInstance:
        made = load(file, text, **settings).instance(Placement("instance", InstanceKind.KIND_CPU))
        assert isinstance(made, BatchInstance)
        return made

    return instance
