"""The plugin's hooks."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.hookspecs import hookimpl
from moorage_python.backend import PythonBackend
from moorage_python.completion import complete
from moorage_python.source import DEFAULT_FILE


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "python"."""
    return [PythonBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A file `model.py`."""
    if DEFAULT_FILE not in files.names:
        return None
    return ModelMatch(PythonBackend.name, "", DEFAULT_FILE)


@hookimpl
def complete_config(config: ModelConfig, files: VersionFiles) -> ModelConfig | None:
    """What the model's own `auto_complete_config` fills in."""
    if config.backend != PythonBackend.name or files.path is None:
        return None
    return complete(config, files)
