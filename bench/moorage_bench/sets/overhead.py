"""What moorage adds to a bare `onnxruntime.InferenceSession.run`, both in this process and without any protocol."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moorage_bench.inprocess import Infer, serving_in_process
from moorage_bench.install import MissingPeerError
from moorage_bench.measure import Point
from moorage_bench.models import SIMPLE, add_sub_inputs, simple_repository
from moorage_bench.plan import Plan

_SIZES = {"add_sub, 128 B": 16, "add_sub, 8 MiB": 1 << 20}
"""Columns of each of the two INT32 inputs; the title counts the bytes of both."""

Timed = Callable[[float], Awaitable[float]]
"""Calls again and again for so many seconds and returns the microseconds of one call."""


def measure(plan: Plan) -> list[Point]:
    """Microseconds a call, for a tiny request and for a large one."""
    repository = simple_repository(plan.folder("simple"))
    return asyncio.run(_measure(plan, repository))


async def _measure(plan: Plan, repository: Path) -> list[Point]:
    session = _session(repository / SIMPLE / "1/model.onnx")
    points: list[Point] = []
    async with serving_in_process(repository, SIMPLE) as infer:
        for title, columns in _SIZES.items():
            inputs = add_sub_inputs(columns)
            sides = {"moorage": _timed_infer(infer, inputs), "session.run": _timed_session(session, inputs)}
            points.append(Point(title, "us", "moorage", "session.run", await _in_turn(plan, title, sides)))
    return points


async def _in_turn(plan: Plan, title: str, sides: Mapping[str, Timed]) -> dict[str, tuple[float, ...]]:
    for timed in sides.values():
        await timed(plan.warmup_s)
    rounds = [{name: await timed(plan.seconds) for name, timed in sides.items()} for _ in range(plan.rounds)]
    plan.progress(f"  {title}: {plan.rounds} rounds, the last: {rounds[-1]}")
    return {name: tuple(readings[name] for readings in rounds) for name in sides}


def _timed_infer(infer: Infer, inputs: Mapping[str, np.ndarray]) -> Timed:
    async def timed(seconds: float) -> float:
        calls = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds or not calls:
            await infer(inputs)
            calls += 1
        return elapsed / calls * 1e6

    return timed


def _timed_session(session: Any, inputs: Mapping[str, np.ndarray]) -> Timed:
    async def timed(seconds: float) -> float:
        calls = 0
        start = time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds or not calls:
            session.run(None, inputs)
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
