"""The backend: finds TensorFlow, and loads SavedModels and frozen graphs with it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import ClassVar

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.errors import ModelError, NotFound
from moorage_tensorflow.faults import load_error
from moorage_tensorflow.graph_def import FrozenGraph
from moorage_tensorflow.model import TensorFlowModel
from moorage_tensorflow.operators import load_op_libraries
from moorage_tensorflow.options import check_version
from moorage_tensorflow.runtime import INSTALL, Runtime, import_runtime
from moorage_tensorflow.saved_model import SavedModel
from moorage_tensorflow.sessions import SessionMaker, Source

SAVEDMODEL, GRAPHDEF = "tensorflow_savedmodel", "tensorflow_graphdef"
SAVEDMODEL_FOLDER, GRAPHDEF_FILE = "model.savedmodel", "model.graphdef"


class TensorFlowBackend(Backend):
    """Runs TensorFlow models, on the CPU or on NVIDIA GPUs."""

    name: ClassVar[str] = "tensorflow"
    platforms = (SAVEDMODEL, GRAPHDEF)
    default_model_filename = SAVEDMODEL_FOLDER
    install_hint = INSTALL

    def load(self, context: LoadContext) -> LoadedModel:
        """Read a model's files, and make the first session."""
        runtime = import_runtime(context.model_name)
        check_version(context)
        load_op_libraries(runtime, context)
        return TensorFlowModel(context, SessionMaker(runtime, context, partial(_source, runtime, context)))


def _source(runtime: Runtime, context: LoadContext, path: Path) -> Source:
    """What the files are: as the platform says, or as they look where it says nothing."""
    if not path.exists():
        raise NotFound(
            f"model '{context.model_name}' version {context.version}: there is no {path}; put {SAVEDMODEL_FOLDER} or "
            f"{GRAPHDEF_FILE} there, or name the file in default_model_filename"
        )
    try:
        if context.config.platform == SAVEDMODEL or (context.config.platform != GRAPHDEF and path.is_dir()):
            return SavedModel(runtime, context, path)
        if path.is_dir():
            raise ModelError(
                f"model '{context.model_name}': {path} is a folder, but platform {GRAPHDEF} is a file; "
                f'write platform: "{SAVEDMODEL}" if it is a SavedModel'
            )
        return FrozenGraph(runtime, context, path)
    except Exception as error:
        raise load_error(error, context.model_name, context.version, path) from error
