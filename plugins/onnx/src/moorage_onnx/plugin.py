"""The plugin's hooks. Nothing here imports ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.hookspecs import hookimpl
from moorage_onnx.backend import DEFAULT_FILE, OnnxBackend


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "onnxruntime"."""
    return [OnnxBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A file `model.onnx`, or a folder of that name that holds one with its external data."""
    if DEFAULT_FILE not in files.top_level():
        return None
    return ModelMatch(OnnxBackend.name, OnnxBackend.platforms[0], DEFAULT_FILE)
