"""Measures sides in turn, and keeps every reading."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Mapping

from attrs import frozen

from moorage_bench.plan import Plan
from moorage_bench.quiet import await_quiet
from moorage_bench.servers import Running

Reading = Callable[[float], float]
"""Measures for about so many seconds and returns one number."""


@frozen
class Aim:
    """The ratio that moorage is to reach: at least (rates) or at most (times).

    With `beyond`, the bound is not on the ratio but on the difference to the base, in the point's unit.
    """

    bound: float
    at_most: bool = False
    beyond: bool = False

    def met(self, value: float) -> bool:
        """Whether a ratio, or a difference, reaches it."""
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {'base + ' * self.beyond}{self.bound:g}"


@frozen
class Point:
    """One comparison. `readings` hold the same number of values for each side, the first one measured before the second."""

    title: str
    unit: str
    subject: str
    base: str
    readings: Mapping[str, tuple[float, ...]]
    aim: Aim | None = None

    @property
    def ratio(self) -> float:
        """Median of the subject over median of the base."""
        return statistics.median(self.readings[self.subject]) / statistics.median(self.readings[self.base])

    @property
    def difference(self) -> float:
        """Median of the subject less that of the base."""
        return statistics.median(self.readings[self.subject]) - statistics.median(self.readings[self.base])

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None without one."""
        if self.aim is None:
            return None
        return self.aim.met(self.difference if self.aim.beyond else self.ratio)

    @property
    def ratio_spread(self) -> tuple[float, float]:
        """Least and greatest ratio of two neighbouring readings."""
        ratios = [a / b for a, b in zip(self.readings[self.subject], self.readings[self.base], strict=True)]
        return min(ratios), max(ratios)


def reading_each(servers: Mapping[str, Running], read: Callable[[Running, float], float]) -> dict[str, Reading]:
    """The same reading of every server."""
    return {name: functools.partial(read, server) for name, server in servers.items()}


def in_turn(plan: Plan, title: str, sides: Mapping[str, Reading]) -> dict[str, tuple[float, ...]]:
    """Readings of every side: A B A B ..., after a warm-up of each that is thrown away."""
    for read in sides.values():
        read(plan.warmup_s)
    readings: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(plan.rounds):
        quiet = await_quiet(plan.patience_s)
        for name, read in sides.items():
            readings[name].append(read(plan.seconds))
        latest = ", ".join(f"{name} {values[-1]:.5g}" for name, values in readings.items())
        plan.progress(f"  {title}: round {number + 1}/{plan.rounds}: {latest}{'' if quiet else ' (the machine was busy)'}")
    return {name: tuple(values) for name, values in readings.items()}
