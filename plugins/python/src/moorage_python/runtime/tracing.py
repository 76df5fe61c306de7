"""What to tell about an exception of a model's code."""

from __future__ import annotations

import traceback

_FRAMES = 3
_LONGEST = 10_000


def describe(error: BaseException) -> str:
    """The exception's type and text, and the last places in the model's code that it came through.

    `ValueError: no such word, at /models/speller/1/model.py:14 in execute`
    """
    places = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in _model_frames(error)]
    text = _text(error)
    head = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}, at {error.filename}:{error.lineno}"
    return f"{head}, at {', called from '.join(reversed(places))}" if places else head


def _text(error: BaseException) -> str:
    """The exception's own text; a model's exceptions may raise even when they are asked for it."""
    try:
        text = str(error)[:_LONGEST].encode(errors="backslashreplace").decode().strip()
    except BaseException as other:  # noqa: BLE001
        return f"its text cannot be shown ({type(other).__name__})"
    return text if len(text) < _LONGEST else f"{text}…"


def _model_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """The last frames, from the first that is not of this package or of the import system on."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "moorage_python" not in frame.filename and not frame.filename.startswith("<frozen importlib")
    ]
    return frames[-_FRAMES:]
