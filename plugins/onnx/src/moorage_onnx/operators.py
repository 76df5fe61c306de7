"""Libraries with operators of their own, which `model_operations { op_library_filename }` names."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moorage.backend import LoadContext, operator_libraries
from moorage.errors import ModelError


class OperatorLibraries:
    """The libraries of a model, registered with each of its sessions.

    Those inside the model's folder are loaded from a private copy: what happens to the file there later harms nobody.
    Keep this object for as long as a session uses it.
    """

    def __init__(self, context: LoadContext) -> None:
        self._model = context.model_name
        self._paths = [library.path for library in operator_libraries(context)]
        if self._paths:
            folder = Path(tempfile.mkdtemp(prefix="moorage-onnx-"))
            self._remove = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            self._paths = _copied(self._paths, context.model_path, folder)

    def give_to(self, options: Any) -> None:
        """Register them with the options of a session. Raises ModelError that names the library which cannot be loaded."""
        for path in self._paths:
            try:
                options.register_custom_ops_library(str(path))
            except Exception as error:
                raise ModelError(
                    f"model '{self._model}': the operator library {path.name} cannot be loaded: {error}; it must be built for "
                    "this system and export RegisterCustomOps"
                ) from error


def _copied(paths: Sequence[Path], inside: Path, folder: Path) -> list[Path]:
    kept = []
    for index, path in enumerate(paths):
        if path.resolve().is_relative_to(inside.resolve()):
            target = folder / str(index) / path.name
            target.parent.mkdir()
            kept.append(Path(shutil.copyfile(path, target)))
        else:
            kept.append(path)
    return kept
