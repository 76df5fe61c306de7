"""The one place where the exceptions of ONNX Runtime become ours."""

from __future__ import annotations

import re
from pathlib import Path

from moorage.errors import ModelError, MoorageError, RequestError

_CALLER = frozenset({"InvalidArgument", "ValueError"})
"""Exceptions of a run that blame its inputs: a shape that does not fit, an input left out."""
_SIZES = re.compile(
    r"broadcast|dimensions? (mismatch|must match)|cannot be reshaped|mismatched dimensions|is not equal to kernel",
    re.IGNORECASE,
)
"""What other exceptions of a run say of inputs whose sizes do not go with each other or with the model."""


def load_error(error: Exception, model: str, version: int, path: Path) -> MoorageError:
    """What a failure to make a session means."""
    if isinstance(error, MoorageError):
        return error
    return ModelError(f"model '{model}' version {version}: ONNX Runtime cannot load {path}: {_reason(error)}")


def run_error(error: Exception, model: str) -> MoorageError:
    """What a failure of a run means: the request's fault if its inputs do not fit, else the model's."""
    if isinstance(error, MoorageError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return ModelError(f"model '{model}': a string output is not valid UTF-8, which ONNX Runtime cannot hand over")
    text = _reason(error)
    kind = RequestError if type(error).__name__ in _CALLER or _SIZES.search(text) else ModelError
    return kind(f"model '{model}': {text}")


def _reason(error: Exception) -> str:
    return str(error).strip() or type(error).__name__
