"""What each backend adds to its framework called in the same process, and whether two instances do twice the work."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from moorage_bench.frameworks import FRAMEWORKS, Framework
from moorage_bench.frameworks.framework import ADD_SUB, BUSY
from moorage_bench.inprocess import bare_instance, serving_models
from moorage_bench.install import MissingPeerError
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.plan import Plan

_TINY = 16
_LARGE = 1 << 20
_TINY_AIM = Aim(25.0, at_most=True, beyond=True)
_LARGE_AIM = Aim(1.1, at_most=True)
_INSTANCES_AIM = Aim(1.6)
_CLIENTS = 4


def measure(plan: Plan, names: Sequence[str] = tuple(FRAMEWORKS)) -> list[Point]:
    """For each framework: microseconds of a call, in the server, in the instance alone and bare; rates of two instances.

    A framework that is not installed is left out. Raises MissingPeerError if none is.
    """
    points: list[Point] = []
    for name in names:
        try:
            points += _measured(plan, name, FRAMEWORKS[name])
        except (ImportError, MissingPeerError) as error:
            plan.progress(f"  {name}: not measured: {error}")
    if not points:
        raise MissingPeerError(f"none of {', '.join(names)} is installed in the environment that runs the benchmarks")
    return points


def _measured(plan: Plan, name: str, framework: Framework) -> list[Point]:
    root = plan.folder("backends", name)
    shutil.rmtree(root)
    framework.repository(root)
    bare = framework.bare(root / ADD_SUB / "1")
    points = []
    with serving_models(root) as ask, bare_instance(root, ADD_SUB, framework.filename) as instance:
        for title, columns, aim in ((f"{name}, 128 B", _TINY, _TINY_AIM), (f"{name}, 8 MiB", _LARGE, _LARGE_AIM)):
            inputs = framework.inputs(columns)
            calls = {
                "moorage": partial(ask, ADD_SUB, inputs),
                "instance": partial(instance, inputs),
                "bare": partial(bare, inputs),
            }
            readings = in_turn(plan, title, {side: typical(call) for side, call in calls.items()})
            points += [Point(title, "us", side, "bare", readings, aim) for side in ("moorage", "instance")]
        busy = framework.busy_input()
        rates = {f"{number} instance{'s' * (number > 1)}": _rate(partial(ask, f"{BUSY}_{number}", busy)) for number in (2, 1)}
        title = f"{name}, two instances"
        points.append(Point(title, "requests/s", "2 instances", "1 instance", in_turn(plan, title, rates), _INSTANCES_AIM))
    return points


def typical(call: Callable[[], object]) -> Callable[[float], float]:
    """Calls again and again for so many seconds; the median of the microseconds of a call, which other work hardly moves."""

    def reading(seconds: float) -> float:
        taken: list[float] = []
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end or not taken:
            call()
            taken.append(time.perf_counter() - start)
        return statistics.median(taken) * 1e6

    return reading


def _rate(call: Callable[[], object]) -> Callable[[float], float]:
    """Requests per second of some clients at once."""

    def client(end: float) -> int:
        done = 0
        while time.perf_counter() < end or not done:
            call()
            done += 1
        return done

    def rate(seconds: float) -> float:
        start = time.perf_counter()
        with ThreadPoolExecutor(_CLIENTS) as pool:
            done = sum(pool.map(client, [start + seconds] * _CLIENTS))
        return done / (time.perf_counter() - start)

    return rate
