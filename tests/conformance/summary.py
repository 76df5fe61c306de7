"""Counts by area, at the end of a test run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import pytest

PROPERTY: Final = "conformance case"
"""Name of the property under which a test says which case it has run."""

STATES: Final = ("passed", "failed", "newly passing", "waiting")


def case_of(report: pytest.TestReport) -> str | None:
    return next((str(value) for name, value in report.user_properties if name == PROPERTY), None)


def state(report: pytest.TestReport) -> str:
    if report.passed:
        return "passed"
    if report.failed:
        return "newly passing" if "XPASS(strict)" in str(report.longrepr) else "failed"
    return "waiting"


def count(reports: Iterable[pytest.TestReport]) -> dict[str, Counter[str]]:
    """How many cases of each area are in which state."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for report in reports:
        case = case_of(report)
        if case is not None and report.when == "call":
            counts[case.split("/")[0]][state(report)] += 1
    return counts


def table(counts: Mapping[str, Counter[str]]) -> list[str]:
    """The counts as lines, the whole in the last."""
    width = max(len(area) for area in [*counts, "all areas"])
    total = sum(counts.values(), Counter())
    head = f"{'':{width}}" + "".join(f"  {name:>13}" for name in STATES)
    rows = [(area, counts[area]) for area in sorted(counts)] + [("all areas", total)]
    return [head, *(f"{area:{width}}" + "".join(f"  {row[name]:>13}" for name in STATES) for area, row in rows)]


def newly_passing(reports: Iterable[pytest.TestReport]) -> list[str]:
    return sorted(str(case_of(one)) for one in reports if case_of(one) and state(one) == "newly passing")
