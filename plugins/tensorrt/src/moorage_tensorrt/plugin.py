"""The plugin's hooks. Nothing here imports TensorRT or CUDA.

Which plan is loaded on which GPU is left to the core, which knows `cc_model_filenames`.
"""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.hookspecs import hookimpl
from moorage_tensorrt.backend import DEFAULT_FILE, TensorRtBackend


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "tensorrt"."""
    return [TensorRtBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A file `model.plan`."""
    if DEFAULT_FILE not in files.names:
        return None
    return ModelMatch(TensorRtBackend.name, TensorRtBackend.platforms[0], DEFAULT_FILE)
