"""The one place where the exceptions of TensorFlow become ours."""

from __future__ import annotations

from pathlib import Path

from moorage.errors import ModelError, MoorageError, RequestError

_CALLER = frozenset({"InvalidArgumentError", "OutOfRangeError"})
"""Exceptions of a run that blame its inputs: shapes that do not go together, an index that is out of range."""
_UNINITIALISED = "FailedPreconditionError"


def load_error(error: Exception, model: str, version: int, path: Path) -> MoorageError:
    """What a failure to load files means."""
    if isinstance(error, MoorageError):
        return error
    reason = _reason(error)
    advice = ""
    if "Op type not registered" in reason:
        advice = " (name the library that has it in model_operations { op_library_filename })"
    return ModelError(f"model '{model}' version {version}: TensorFlow cannot load {path}: {reason}{advice}")


def run_error(error: Exception, model: str) -> MoorageError:
    """What a failure of a run means: the request's fault if its inputs do not fit, else the model's."""
    if isinstance(error, MoorageError):
        return error
    name = type(error).__name__
    kind = RequestError if name in _CALLER else ModelError
    advice = " (freeze the graph, or initialise it with TF_INIT_OPS_FILE)" if name == _UNINITIALISED else ""
    return kind(f"model '{model}': {_reason(error)}{advice}")


def _reason(error: Exception) -> str:
    """What TensorFlow says, on one line; its exceptions carry it as `message`."""
    text = getattr(error, "message", "") or str(error)
    return " ".join(str(text).split()) or type(error).__name__
