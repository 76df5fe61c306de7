"""Finds the TensorRT that is installed, and makes engines of plans with it."""

from __future__ import annotations

import ctypes
import importlib
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from attrs import frozen

from moorage.errors import ModelError, PluginError
from moorage_tensorrt.log import make_log
from moorage_tensorrt.settings import TensorRtSettings

_MODULES = {"full": "tensorrt", "lean": "tensorrt_lean", "dispatch": "tensorrt_dispatch", "rtx": "tensorrt_rtx"}
_AUTO = ("full", "lean", "dispatch")
_OLDEST = 10
INSTALL = '`pip install "moorage-tensorrt[full]"`, or [lean] or [dispatch] for version-compatible plans'
INSTALL_RTX = '`pip install "moorage-tensorrt[rtx]"`'


@frozen(eq=False)
class TensorRt:
    """A TensorRT package (`trt` is its module) with its log, which outlives all that is made with it."""

    trt: ModuleType
    log: Any
    making: threading.Lock
    """Making engines is not safe on several threads."""


class TensorRtFinder:
    """Imports TensorRT's packages, each once."""

    def __init__(self) -> None:
        self._found: dict[str, TensorRt] = {}
        self._libraries: dict[str, ctypes.CDLL] = {}
        self._lock = threading.Lock()

    def find(self, model: str, settings: TensorRtSettings, *, rtx: bool) -> TensorRt:
        """The package to run a plan with, its layers' libraries loaded. Raises PluginError that says what to install."""
        kinds = ("rtx",) if rtx else _AUTO if settings.runtime == "auto" else (settings.runtime,)
        with self._lock:
            found = self._first(model, kinds)
            for library in settings.plugins:
                self._load_library(model, library, found)
        return found

    def _first(self, model: str, kinds: tuple[str, ...]) -> TensorRt:
        reasons = []
        for kind in kinds:
            if kind in self._found:
                return self._found[kind]
            try:
                module = importlib.import_module(_MODULES[kind])
            except Exception as error:  # noqa: BLE001 - bindings without their libraries raise whatever they like
                reasons.append(f"{_MODULES[kind]}: {error}")
                continue
            _check_version(model, kind, module)
            self._found[kind] = TensorRt(module, make_log(module), threading.Lock())
            return self._found[kind]
        install = INSTALL_RTX if kinds == ("rtx",) else INSTALL
        why = "; ".join(reasons)
        raise PluginError(
            f"model '{model}': the backend 'tensorrt' needs TensorRT, which cannot be imported ({why}): {install}"
        )

    def _load_library(self, model: str, library: str, found: TensorRt) -> None:
        if library in self._libraries:
            return
        try:
            self._libraries[library] = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ModelError(
                f"model '{model}': cannot load '{library}', which --backend-config=tensorrt,plugins names: {error}"
            ) from error
        if hasattr(found.trt, "init_libnvinfer_plugins"):  # the lean runtimes have none of TensorRT's own layers
            found.trt.init_libnvinfer_plugins(found.log, "")


def _check_version(model: str, kind: str, module: ModuleType) -> None:
    version = str(module.__version__)
    if kind != "rtx" and int(version.partition(".")[0]) < _OLDEST:
        raise PluginError(f"model '{model}': TensorRT {version} is too old, {_OLDEST} or newer is needed: {INSTALL}")


def make_engine(tensorrt: TensorRt, model: str, path: Path, settings: TensorRtSettings, *, dla_core: int) -> tuple[Any, Any]:
    """A runtime and the engine of a plan, on the current CUDA device. Raises ModelError with TensorRT's own words."""
    with tensorrt.making:
        tensorrt.log.take()
        runtime = tensorrt.trt.Runtime(tensorrt.log)
        if settings.version_compatible:
            runtime.engine_host_code_allowed = True
        if dla_core >= 0:
            _choose_dla(runtime, model, dla_core)
        engine = runtime.deserialize_cuda_engine(path.read_bytes())
    if engine is None:
        raise ModelError(
            f"model '{model}': TensorRT {tensorrt.trt.__version__} cannot make an engine of {path}: {tensorrt.log.take()}; "
            "a plan runs on the kind of GPU and with the version of TensorRT that it was built for, unless it was built to be "
            "compatible (then run the server with --backend-config=tensorrt,version-compatible=true)"
        )
    return runtime, engine


def _choose_dla(runtime: Any, model: str, core: int) -> None:
    if core >= runtime.num_DLA_cores:
        raise ModelError(
            f"model '{model}': secondary_devices asks for NVDLA core {core}, but the device has {runtime.num_DLA_cores}"
        )
    runtime.DLA_core = core
