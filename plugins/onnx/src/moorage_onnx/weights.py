"""Weights that lie outside the model file, read into memory.

ONNX Runtime maps such files; a mapped file that is truncated kills the process, one that is overwritten changes the results.
Read once into memory that all sessions of the model use, they are safe from whatever happens to the files.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from moorage.errors import ModelError

_ALIGNMENT = 64
_USE_DIRECTLY = "session.use_external_initializer_file_buffers_directly"


class ExternalWeights:
    """The files of a model's external weights in memory. Keep it for as long as a session uses it."""

    def __init__(self, model: str, folder: Path, locations: Iterable[str]) -> None:
        self._buffers = {name: _read(model, _inside(model, folder, name)) for name in sorted(locations)}

    def give_to(self, options: Any) -> None:
        """Make a session with these options take the weights from here."""
        if self._buffers:
            names, buffers = list(self._buffers), list(self._buffers.values())
            options.add_external_initializers_from_files_in_memory(names, buffers, [len(buffer) for buffer in buffers])
            options.add_session_config_entry(_USE_DIRECTLY, "1")


def _inside(model: str, folder: Path, name: str) -> Path:
    path = folder / name
    if "\0" in name:
        raise ModelError(f"model '{model}': {name!r} is no name of a file with weights; the model file is broken")
    if not path.resolve().is_relative_to(folder.resolve()):
        raise ModelError(f"model '{model}': its weights '{name}' lie outside the folder {folder}; keep them below it")
    if not path.is_file():
        raise ModelError(f"model '{model}': the file {path} with its weights is missing; copy it next to the model file")
    return path


def _read(model: str, path: Path) -> np.ndarray:
    size = path.stat().st_size
    block = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    skip = -block.ctypes.data % _ALIGNMENT
    buffer = block[skip : skip + size]
    with path.open("rb") as file:
        if file.readinto(buffer.data) != size:
            raise ModelError(
                f"model '{model}': {path} became shorter while it was read; load the model again when it is complete"
            )
    return buffer
