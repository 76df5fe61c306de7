"""How long a look at a large local repository takes, beside a bare `os.walk` over it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from moorage_bench.inprocess import scanner
from moorage_bench.load import LoadError
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.models import many_models
from moorage_bench.plan import Plan

_AIM = Aim(4.0, at_most=True)


def measure(plan: Plan) -> list[Point]:
    """Seconds for one look at all models, each with a configuration and one version of one file."""
    return beside_walk(plan, scanner, "models")


def beside_walk(plan: Plan, make: Callable[[Path], Callable[[], int]], what: str) -> list[Point]:
    """Seconds for what `make` gives for a repository of many models; it says how many models it has found."""
    repository = many_models(plan.workspace, plan.models)
    look = make(repository)
    found = look()
    if found != plan.models:
        raise LoadError(f"moorage found {found} models where there are {plan.models}")
    title = f"{plan.models} {what}"
    sides = {"moorage": timed(look), "os.walk": timed(lambda: walk(repository))}
    return [Point(title, "s", "moorage", "os.walk", in_turn(plan, title, sides), _AIM)]


def walk(root: Path) -> int:
    """Walk over a folder; the number of files."""
    return sum(len(files) for _, _, files in os.walk(root))


def timed(look: Callable[[], int]) -> Callable[[float], float]:
    """A side of a comparison: the seconds that one look takes."""

    def measured(_seconds: float) -> float:
        start = time.perf_counter()
        look()
        return time.perf_counter() - start

    return measured
