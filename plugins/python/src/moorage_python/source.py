"""A version's code: found, imported, and given its configuration."""

from __future__ import annotations

import json
from pathlib import Path

from moorage.config import to_json
from moorage.config.schema import ModelConfig
from moorage.errors import ModelError, NotFound
from moorage_python.runtime.host import Host, HostFailure

DEFAULT_FILE = "model.py"


def config_json(config: ModelConfig) -> str:
    """The configuration as models read it."""
    return json.dumps(to_json(config))


def open_host(model: str, version: int, file: Path, version_path: Path, model_path: Path) -> Host:
    """Import a model's file. Raises NotFound, or ModelError with what the import raised and where."""
    if not file.is_file():
        raise NotFound(f"model '{model}' version {version}: no file {file}; put it there or set default_model_filename")
    folders = dict.fromkeys((version_path, file.parent, model_path))
    try:
        return Host(f"{model} version {version}", file, tuple(folders))
    except HostFailure as failure:
        raise ModelError(f"model '{model}' version {version}: {failure}") from failure.__cause__
