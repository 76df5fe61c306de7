"""Models that misbehave hurt nobody but themselves."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from moorage.errors import MoorageError
from moorage.types import Job
from moorage_python.runtime.failures import TritonModelException
from moorage_python.runtime.imports import ImportContext
from moorage_python.runtime.responses import InferenceResponse
from moorage_python.runtime.tracing import describe

Serve = Callable[..., Any]

MODEL = """
class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")

class TritonPythonModel:
    def execute(self, requests):
        {what}
"""


@pytest.mark.parametrize(
    "what, said",
    [
        ("raise Speechless()", "Speechless: its text cannot be shown"),
        ("raise ValueError('half a \\ud800 pair')", "half a \\ud800 pair"),
        ("return [pb_utils.InferenceResponse([], pb_utils.TritonError('half a \\ud800 pair'))]", "half a \\ud800 pair"),
        ("return [pb_utils.InferenceResponse([], None, {'a': 2**70})]", "does not fit in 64 bits"),
        ("return [pb_utils.InferenceResponse([], None, {'a': '\\udcff'})]", "UTF-8"),
    ],
)
def test_what_cannot_be_told_is_told_otherwise(serve: Serve, job: Callable[..., Job], what: str, said: str) -> None:
    (answer,) = serve(MODEL.format(what=what)).answer(job())
    error = answer if isinstance(answer, MoorageError) else answer.error
    assert said in str(error)
    str(error).encode()


def test_a_very_long_text_is_cut() -> None:
    assert len(describe(ValueError("x" * 50_000_000))) < 11_000


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1])
def test_parameters_fit_the_protocols(value: int) -> None:
    InferenceResponse((), None, {"fits": 2**63 - 1})
    with pytest.raises(TritonModelException, match="64 bits"):
        InferenceResponse((), None, {"large": value})


def test_a_model_cannot_take_away_the_path(serve: Serve) -> None:
    before = list(sys.path)
    serve("import sys\nsys.path.clear()\nclass TritonPythonModel: pass")
    assert set(before) <= set(sys.path)


def test_modules_may_be_imported_while_a_version_is_forgotten(tmp_path: Path) -> None:
    """Loads and unloads of other versions run at the same time."""
    stop = threading.Event()

    def import_things() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            sys.modules[f"hostile_{number % 5000}"] = ModuleType("hostile")
            sys.modules.pop(f"hostile_{(number + 2500) % 5000}", None)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=import_things)
    thread.start()
    try:
        for _ in range(200):
            ImportContext("m version 1", [tmp_path]).close()
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
        for name in [name for name in list(sys.modules) if name.startswith("hostile_")]:
            del sys.modules[name]
