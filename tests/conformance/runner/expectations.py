"""Which cases must pass now: read from expected.yaml.

`expected_areas` are the areas whose cases all pass, `passing` names further cases that do; `waiting` lists, by name and with
the reason, the cases that cannot pass yet. A case of which nothing is said, or that is waiting and passes, is an error: the
list always tells how far the server is.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from conformance.runner.case import Case, CaseError, read_yaml


@frozen
class Expectations:
    """Areas that must pass whole but for the cases that wait, and why these do."""

    areas: frozenset[str]
    passing: frozenset[str]
    waiting: dict[str, str]

    def check(self, cases: Iterable[Case]) -> None:
        """Every area and case that is named exists; every case is accounted for."""
        names = {case.full_name: case.area for case in cases}
        unknown = sorted((set(self.waiting) | self.passing) - set(names)) + sorted(self.areas - set(names.values()))
        if unknown:
            raise CaseError(f"expected.yaml names what does not exist: {', '.join(unknown)}")
        twice = sorted(self.passing & (set(self.waiting) | {name for name, area in names.items() if area in self.areas}))
        if twice:
            raise CaseError(f"expected.yaml need not name, or names twice: {', '.join(twice)}")
        known = {name for name, area in names.items() if area in self.areas} | self.passing | set(self.waiting)
        forgotten = sorted(set(names) - known)
        if forgotten:
            raise CaseError(f"expected.yaml says nothing of {', '.join(forgotten)}")


def read_expectations(file: Path) -> Expectations:
    document = read_yaml(file)
    waiting: dict[str, str] = {}
    for group in document["waiting"]:
        for name in group["cases"]:
            if name in waiting:
                raise CaseError(f"expected.yaml: {name} waits twice")
            waiting[name] = group["reason"]
    return Expectations(frozenset(document["expected_areas"]), frozenset(document["passing"]), waiting)
