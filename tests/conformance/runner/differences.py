"""Where moorage differs from the recordings on purpose: read from differences.yaml and put over the cases.

An entry names a case and one of its steps, by number and by label, with what is expected instead and why:

    - case: versions/no_version_directory
      step: 2
      does: http POST /v2/repository/index
      expect: {...}
      reason: what a user gains

or the start of the server, with steps to follow where the recorded server refused:

    - case: repositories/same_name_in_two_repositories_refuses
      start: ok
      steps: [...]
      reason: ...

or flags that the server is given beside those of the case:

    - case: load_overrides/file_override_over_http
      args: [--allow-model-override=true]
      reason: ...
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from conformance.runner.case import Case, CaseError, Step, label, read_yaml

STEP_KEYS = {"case", "step", "does", "expect", "reason"}
START_KEYS = {"case", "start", "steps", "reason"}
ARGS_KEYS = {"case", "args", "reason"}


@frozen
class StepDifference:
    """Another expectation of one step."""

    case: str
    step: int
    does: str
    expect: Any
    reason: str


@frozen
class StartDifference:
    """Another outcome of the start, and the steps that follow it."""

    case: str
    start: str
    reason: str
    steps: tuple[Step, ...] = ()


@frozen
class ArgsDifference:
    """Flags to add."""

    case: str
    args: tuple[str, ...]
    reason: str


Difference = StepDifference | StartDifference | ArgsDifference


def read_differences(file: Path) -> list[Difference]:
    return [_entry(data) for data in read_yaml(file) or []]


def _entry(data: Mapping[str, Any]) -> Difference:
    keys = set(data)
    if not str(data.get("reason", "")).strip():
        raise CaseError(f"difference of {data.get('case')}: the reason is missing")
    if keys == STEP_KEYS:
        return StepDifference(**data)
    if START_KEYS - {"steps"} <= keys <= START_KEYS and data["start"] in {"ok", "fail"}:
        return StartDifference(data["case"], data["start"], data["reason"], tuple(data.get("steps", ())))
    if keys == ARGS_KEYS and data["args"]:
        return ArgsDifference(data["case"], tuple(data["args"]), data["reason"])
    allowed = f"{sorted(STEP_KEYS)}, {sorted(START_KEYS)} or {sorted(ARGS_KEYS)}"
    raise CaseError(f"difference of {data.get('case')}: give {allowed}, not {sorted(keys)}")


def apply(differences: Iterable[Difference], cases: Sequence[Case]) -> list[Case]:
    """The cases with the differences put over them. An entry that changes nothing, or fits nothing, is an error."""
    found = {case.full_name: case for case in cases}
    for difference in differences:
        if difference.case not in found:
            raise CaseError(f"difference of {difference.case}: there is no such case")
        case = found[difference.case]
        data = json.loads(json.dumps(case.data))
        if isinstance(difference, StepDifference):
            _change_step(data, difference)
        elif isinstance(difference, StartDifference):
            _change_start(data, difference)
        else:
            _add_args(data, difference)
        found[difference.case] = evolve(case, data=data)
    return list(found.values())


def _change_step(data: dict[str, Any], difference: StepDifference) -> None:
    where = f"difference of {difference.case}, step {difference.step}"
    steps = data.get("steps", [])
    if not 1 <= difference.step <= len(steps):
        raise CaseError(f"{where}: the case has {len(steps)} steps")
    step = steps[difference.step - 1]
    if label(step) != difference.does:
        raise CaseError(f"{where}: the step does '{label(step)}', not '{difference.does}'")
    if "expect" not in step:
        raise CaseError(f"{where}: nothing is compared in this step")
    if step["expect"] == difference.expect:
        raise CaseError(f"{where}: this is what was recorded, or another entry says it already")
    step["expect"] = difference.expect


def _change_start(data: dict[str, Any], difference: StartDifference) -> None:
    where = f"difference of {difference.case}, start"
    if data.get("start", "ok") == difference.start:
        raise CaseError(f"{where}: '{difference.start}' is what was recorded, or another entry says it already")
    if difference.start == "fail" and difference.steps:
        raise CaseError(f"{where}: a server that does not start takes no steps")
    data["start"] = difference.start
    data["steps"] = list(difference.steps)


def _add_args(data: dict[str, Any], difference: ArgsDifference) -> None:
    args = data.setdefault("args", [])
    known = [arg for arg in difference.args if arg in args]
    if known:
        raise CaseError(f"difference of {difference.case}, args: {known[0]} is there already")
    args += difference.args
