"""The one place where the exceptions of PyTorch become ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from moorage.errors import ModelError, MoorageError, RequestError, told
from moorage.types import DataType

_CALLER: Final = re.compile(
    r"must match|cannot be multiplied|size mismatch|sizes? of tensors? must|not broadcastable|index out of (range|bounds)"
    r"|is out of bounds|invalid for input of size|Guard failed|to have \d+ channels|unmatched dim|dim value is too"
    r"|inconsistent tensor size|expected \d+-?d|kernel size can't be greater|expected.*dimension|expected size",
    re.IGNORECASE,
)
"""What PyTorch says of inputs whose sizes do not go with the model or with each other."""
_DTYPE: Final = re.compile(r"dtype|scalar type|data type|Expected object of|must be the same type")
_LONGEST: Final = 600
_FRAMES: Final = re.compile(r"\n(Exception raised from|frame #\d+:|C\+\+ CapturedTraceback)")
_OPERATOR: Final = re.compile(r"Unknown builtin op: (\w+)::(\w+)")
_LIBRARIES: Final = frozenset({"torchvision", "torchaudio", "torchtext"})


def load_error(error: Exception, model: str, version: int, path: Path) -> MoorageError:
    """What a failure to read a model file means."""
    if isinstance(error, MoorageError):
        return error
    return ModelError(f"model '{model}' version {version}: PyTorch cannot load {path}: {reason(error)}{_library_advice(error)}")


def run_error(error: Exception, model: str, inputs: Mapping[str, np.ndarray]) -> MoorageError:
    """What a failure of a run means: the request's fault if its sizes do not fit, else the model's."""
    if isinstance(error, MoorageError):
        return error
    if isinstance(error, UnicodeDecodeError):
        return ModelError(f"model '{model}': a string output is not valid UTF-8")
    text = reason(error)
    given = f"given {_listed(inputs)}"
    if isinstance(error, IndexError) or (_CALLER.search(text) and not _DTYPE.search(text)):
        return RequestError(f"model '{model}' cannot compute with these inputs: {text} ({given})")
    advice = "; is data_type in the configuration what the model takes?" if _DTYPE.search(text) else ""
    return ModelError(f"model '{model}' failed: {text} ({given}){advice}")


def missing_library(error: Exception) -> str:
    """The package whose operators a TorchScript file needs, if PyTorch does not know them and the package is known here."""
    found = _OPERATOR.search(told(error))
    return found[1] if found and found[1] in _LIBRARIES else ""


def reason(error: Exception) -> str:
    """What went wrong, without the C++ and TorchScript frames around it."""
    text = _FRAMES.split(told(error))[0].strip()
    if "Traceback of TorchScript" in text:
        text = _after_traceback(text)
    return _short(text) or type(error).__name__


def _after_traceback(text: str) -> str:
    """The last line `SomeError: ...` of a traceback, with what follows it."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if re.match(r"[\w.]*(Error|Exception)\b", line)]
    return "\n".join(lines[starts[-1] :]) if starts else text


def _short(text: str) -> str:
    joined = re.sub(r"\s*\n\s*", " ", text)
    return joined if len(joined) <= _LONGEST else f"{joined[:_LONGEST]} …"


def _library_advice(error: Exception) -> str:
    found = _OPERATOR.search(told(error))
    if found is None:
        return ""
    if found[1] in _LIBRARIES:
        return f"; the operators {found[1]}::… come with `pip install {found[1]}`, in the version that goes with your PyTorch"
    advice = "name the library that has it in model_operations { op_library_filename }"
    return f"; the operator {found[1]}::{found[2]} is not known here: {advice}"


def _listed(inputs: Mapping[str, np.ndarray]) -> str:
    return ", ".join(f"'{name}' {_type(array)} {list(array.shape)}" for name, array in inputs.items()) or "no inputs"


def _type(array: np.ndarray) -> str:
    datatype = DataType.from_numpy(array.dtype)
    return datatype.wire if datatype else str(array.dtype)
