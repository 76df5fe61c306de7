"""The one place where the exceptions of OpenVINO become ours."""

from __future__ import annotations

import re
from pathlib import Path

from moorage.errors import ModelError, MoorageError, RequestError

_SHAPES = re.compile(r"shape.?infer", re.IGNORECASE)
"""In messages of a run that blame the shapes of its inputs."""


def load_error(error: Exception, model: str, version: int, path: Path) -> MoorageError:
    """What a failure to read or compile a model means."""
    if isinstance(error, MoorageError):
        return error
    return ModelError(f"model '{model}' version {version}: OpenVINO cannot load {path}: {reason(error)}")


def run_error(error: Exception, model: str) -> MoorageError:
    """What a failure of a run means: the request's fault if its shapes do not go together, else the model's."""
    if isinstance(error, MoorageError):
        return error
    kind = RequestError if _SHAPES.search(str(error)) else ModelError
    return kind(f"model '{model}': {reason(error)}")


def reason(error: Exception) -> str:
    """What OpenVINO says of an error, without the places in its source."""
    lines = (line.strip() for line in str(error).splitlines())
    told = "; ".join(line for line in lines if line and not line.startswith("Exception from "))
    return told or type(error).__name__
