"""Libraries with operations of the user's own, which `model_operations { op_library_filename }` names."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
from pathlib import Path

from moorage.backend import LoadContext, operator_libraries
from moorage_tensorflow.runtime import Runtime

_loaded: set[bytes] = set()
"""Check sums of the libraries that this process has. TensorFlow keeps them, and refuses their operations a second time."""
_lock = threading.Lock()


def load_op_libraries(runtime: Runtime, context: LoadContext) -> None:
    """Load a model's libraries. Raises ConfigError that names the one which cannot be."""
    for library in operator_libraries(context):
        try:
            with _lock:
                _load(runtime, library.path)
        except Exception as error:
            advice = (
                "build it for the TensorFlow that is installed here; another version of one that is loaded needs a new server"
            )
            raise library.fault(f"cannot be loaded: {' '.join(str(error).split())}", advice) from error


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
