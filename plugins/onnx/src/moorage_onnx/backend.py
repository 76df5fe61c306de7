"""The backend: finds ONNX Runtime, and loads model files with it."""

from __future__ import annotations

import importlib
import threading
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from moorage.backend import Backend, LoadContext, LoadedModel, Settings
from moorage.errors import NotFound, PluginError
from moorage_onnx.model import OnnxModel
from moorage_onnx.options import use_global_threads
from moorage_onnx.sessions import SessionMaker

DEFAULT_FILE = "model.onnx"
INSTALL = '`pip install "moorage-onnx[cpu]"`, or "moorage-onnx[gpu]" on a machine with an NVIDIA GPU'


class OnnxBackend(Backend):
    """Runs ONNX models with ONNX Runtime, on the CPU or on NVIDIA GPUs."""

    name: ClassVar[str] = "onnxruntime"
    platforms = ("onnxruntime_onnx",)
    default_model_filename = DEFAULT_FILE
    install_hint = INSTALL

    def __init__(self) -> None:
        self._prepared = False
        self._lock = threading.Lock()

    def load(self, context: LoadContext) -> LoadedModel:
        """Read a model file, or the one in a folder, and make the first session."""
        runtime = import_runtime(context.model_name)
        with self._lock:
            if not self._prepared:
                use_global_threads(runtime, Settings.of(context))
                self._prepared = True
        return OnnxModel(context, SessionMaker(runtime, context, model_path(context)))


def import_runtime(model: str) -> ModuleType:
    """The module `onnxruntime`. Raises PluginError that says what to install."""
    try:
        return importlib.import_module("onnxruntime")
    except ImportError as error:
        raise PluginError(
            f"model '{model}': the backend 'onnxruntime' needs ONNX Runtime, which cannot be imported ({error}): {INSTALL}"
        ) from error


def model_path(context: LoadContext) -> Path:
    """The `.onnx` file to load: `model_file` itself, or the one inside the folder of that name."""
    path = context.model_file
    if path.is_dir():
        inside = path / DEFAULT_FILE
        others = sorted(path.glob("*.onnx"))
        path = others[0] if not inside.exists() and len(others) == 1 else inside
    if not path.is_file():
        raise NotFound(
            f"model '{context.model_name}' version {context.version}: no file {path}; "
            f"put {DEFAULT_FILE} there or name the file in default_model_filename"
        )
    return path
