"""Libraries with operations of the user's own, which `model_operations { op_library_filename }` names."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from pathlib import Path

from moorage.backend import LoadContext
from moorage.errors import ConfigError, Fault
from moorage_tensorflow.runtime import Runtime

_loaded: set[bytes] = set()
"""Check sums of the libraries that this process has. TensorFlow keeps them, and refuses their operations a second time."""
_lock = threading.Lock()


def load_op_libraries(runtime: Runtime, context: LoadContext) -> None:
    """Load a model's libraries. Raises ConfigError that names the one which cannot be."""
    operations = context.config.model_operations
    for index, name in enumerate(operations.op_library_filename if operations else ()):
        field = f"model_operations.op_library_filename[{index}]"
        path = _found(context, field, name)
        try:
            with _lock:
                _load(runtime, path)
        except Exception as error:
            message = f"'{name}' cannot be loaded: {' '.join(str(error).split())}"
            advice = (
                "build it for the TensorFlow that is installed here; another version of one that is loaded needs a new server"
            )
            raise ConfigError([Fault(message, field=field, advice=advice)], context.model_name) from error


def _found(context: LoadContext, field: str, name: str) -> Path:
    """An absolute path, or one below the version's or the model's folder, or the working directory as in Triton."""
    for folder in (context.version_path, context.model_path, Path.cwd()):
        path = folder / name
        if path.is_file():
            return path
    advice = f"put it into {context.model_path}, or write its absolute path"
    raise ConfigError([Fault(f"there is no library '{name}'", field=field, advice=advice)], context.model_name)


def _load(runtime: Runtime, path: Path) -> None:
    """Load a library from a copy, so that what happens to the file later harms nobody."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).digest()
    if digest in _loaded:
        return
    folder = Path(tempfile.mkdtemp(prefix="moorage-tensorflow-"))
    try:
        copy = folder / path.name
        copy.write_bytes(content)
        runtime.tf.load_op_library(str(copy))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _loaded.add(digest)
