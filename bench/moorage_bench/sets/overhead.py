"""What moorage adds to a bare `onnxruntime.InferenceSession.run`, both in this process and without any protocol."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from moorage_bench.inprocess import serving_in_process
from moorage_bench.install import MissingPeerError
from moorage_bench.measure import Point, in_turn
from moorage_bench.models import SIMPLE, add_sub_inputs, simple_repository
from moorage_bench.plan import Plan

_SIZES = {"add_sub, 128 B": 16, "add_sub, 8 MiB": 1 << 20}
"""Columns of each of the two INT32 inputs; the title counts the bytes of both."""


def measure(plan: Plan) -> list[Point]:
    """Microseconds a call, for a tiny request and for a large one."""
    repository = simple_repository(plan.folder("simple"))
    session = _session(repository / SIMPLE / "1/model.onnx")
    points: list[Point] = []
    with serving_in_process(repository, SIMPLE) as infer:
        for title, columns in _SIZES.items():
            inputs = add_sub_inputs(columns)
            sides = {"moorage": _timed(partial(infer, inputs)), "session.run": _timed(partial(session.run, None, inputs))}
            points.append(Point(title, "us", "moorage", "session.run", in_turn(plan, title, sides)))
    return points


def _timed(call: Callable[[], object]) -> Callable[[float], float]:
    """Calls again and again for so many seconds and returns the microseconds of one call."""

    def timed(seconds: float) -> float:
        calls = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds or not calls:
            call()
            calls += 1
        return elapsed / calls * 1e6

    return timed


def _session(path: Path) -> Any:
    try:
        import onnxruntime  # noqa: PLC0415 - this set alone needs it
    except ImportError as error:
        raise MissingPeerError("onnxruntime is not installed in the environment that runs the benchmarks") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
