"""Reads a model's files into memory, so that what happens to them later harms no loaded model.

OpenVINO would map the weights: a mapped file that is truncated kills the process, one that is overwritten changes the results.
Of the formats other than its own it reads all files into memory when it is told not to map them.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from moorage.backend import LoadContext
from moorage.errors import ModelError, NotFound
from moorage_openvino.checkpoint import check_variables
from moorage_openvino.faults import load_error
from moorage_openvino.weights import check_weights, needed_bytes


def read_model(runtime: ModuleType, core: Any, context: LoadContext) -> Any:
    """An `openvino.Model` from the file or folder of this version. `core` must have ENABLE_MMAP off."""
    path = context.model_file
    if not path.exists():
        raise NotFound(
            f"model '{context.model_name}' version {context.version}: no file {path}; "
            "put model.xml and model.bin there or name the file in default_model_filename"
        )
    check_variables(context.model_name, path)
    try:
        if path.suffix == ".xml":
            return _read_ir(runtime, core, context.model_name, path)
        return core.read_model(_inside(path))
    except Exception as error:
        raise load_error(error, context.model_name, context.version, path) from error


def _inside(path: Path) -> Path:
    """The file that OpenVINO is to be given: for an ONNX model in a folder with its weights, the one inside."""
    inner = path / path.name
    return inner if path.is_dir() and inner.is_file() else path


def _read_ir(runtime: ModuleType, core: Any, model: str, path: Path) -> Any:
    xml, weights = path.read_bytes(), path.with_suffix(".bin")
    needed = needed_bytes(xml)
    check_weights(model, path, weights, needed)
    return core.read_model(xml, _tensor(runtime, weights, needed))


def _tensor(runtime: ModuleType, path: Path, size: int) -> Any:
    """The first bytes of a file in memory of OpenVINO's own."""
    tensor = runtime.Tensor(runtime.Type.u8, [size])
    if size:
        with path.open("rb") as file:
            if file.readinto(tensor.data.data) != size:
                raise ModelError(f"{path} became shorter while it was read; load the model again when it is complete")
    return tensor
