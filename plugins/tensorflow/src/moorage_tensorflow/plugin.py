"""The plugin's hooks. Nothing here imports TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.hookspecs import hookimpl
from moorage_tensorflow.backend import GRAPHDEF, GRAPHDEF_FILE, SAVEDMODEL, SAVEDMODEL_FOLDER, TensorFlowBackend


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "tensorflow"."""
    return [TensorFlowBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A folder `model.savedmodel`, or a file `model.graphdef`. With both, the SavedModel, which says more of itself."""
    there = files.top_level()
    if SAVEDMODEL_FOLDER in there:
        return ModelMatch(TensorFlowBackend.name, SAVEDMODEL, SAVEDMODEL_FOLDER)
    if GRAPHDEF_FILE in there:
        return ModelMatch(TensorFlowBackend.name, GRAPHDEF, GRAPHDEF_FILE)
    return None
