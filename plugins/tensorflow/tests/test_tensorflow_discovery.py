from __future__ import annotations

from typing import Any

import pytest

from moorage.backend import LoadContext, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.errors import PluginError
from moorage_tensorflow import runtime
from moorage_tensorflow.plugin import backends, discover_model


@pytest.mark.parametrize(
    "names, found",
    [
        ({"model.savedmodel/saved_model.pb", "model.savedmodel/variables/variables.index"}, "model.savedmodel"),
        ({"model.graphdef"}, "model.graphdef"),
        ({"model.graphdef", "model.savedmodel/saved_model.pb"}, "model.savedmodel"),
        ({"saved_model.pb"}, None),
        ({"x/model.graphdef"}, None),
    ],
)
def test_discovers_by_name(names: set[str], found: str | None) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match and match.default_model_filename) == found
    if match:
        kind = "savedmodel" if match.default_model_filename == "model.savedmodel" else "graphdef"
        assert (match.backend, match.platform) == ("tensorflow", f"tensorflow_{kind}")


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert (backend.name, backend.platforms) == ("tensorflow", ("tensorflow_savedmodel", "tensorflow_graphdef"))


def test_a_missing_framework_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    def absent() -> None:
        raise ImportError("No module named 'tensorflow'")

    monkeypatch.setattr(runtime, "_quietly_imported", absent)
    (backend,) = backends()
    with pytest.raises(PluginError, match=r'model \'m\': .*pip install "moorage-tensorflow\[cpu\]"'):
        backend().load(LoadContext("m", 1, ModelConfig(name="m"), tmp_path, tmp_path, "model.graphdef"))
