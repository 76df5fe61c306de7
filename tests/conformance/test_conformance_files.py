"""The files of differences and expectations are strict: what fits nothing or changes nothing is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import suite
from conformance.runner.case import Case, CaseError, read_cases
from conformance.runner.differences import apply, read_differences
from conformance.runner.expectations import Expectations, read_expectations

STEP = {"http": "GET /v2", "expect": {"status": 200}}
CASE = Case("area", "one", Path("area.yaml"), {"name": "one", "steps": [STEP, {"sleep": 1}]})
REFUSED = Case("area", "refused", Path("area.yaml"), {"name": "refused", "start": "fail"})
CHANGE = {"case": "area/one", "step": 1, "does": "http GET /v2", "expect": {"status": 201}, "reason": "better"}


def applied(tmp_path: Path, *entries: dict[str, Any]) -> list[Case]:
    file = tmp_path / "differences.yaml"
    file.write_text(json.dumps(entries))
    return apply(read_differences(file), [CASE, REFUSED])


def test_a_step_is_changed_in_a_copy(tmp_path: Path) -> None:
    changed = applied(tmp_path, CHANGE)[0]
    assert changed.steps[0]["expect"] == {"status": 201}
    assert CASE.steps[0]["expect"] == {"status": 200}


def test_a_refused_start_is_changed(tmp_path: Path) -> None:
    entry = {"case": "area/refused", "start": "ok", "steps": [STEP], "reason": "better"}
    changed = applied(tmp_path, entry)[1]
    assert (changed.data["start"], changed.steps) == ("ok", [STEP])


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"case": "area/two"}, "no such case"),
        ({"step": 3}, "2 steps"),
        ({"step": 0}, "2 steps"),
        ({"does": "http GET /v3"}, "not 'http GET /v3'"),
        ({"step": 2, "does": "sleep"}, "nothing is compared"),
        ({"expect": {"status": 200}}, "what was recorded"),
        ({"reason": " "}, "reason is missing"),
        ({"note": "?"}, "not \\['case'"),
    ],
)
def test_an_entry_that_fits_nothing_is_refused(wrong: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(CaseError, match=told):
        applied(tmp_path, CHANGE | wrong)


def test_flags_are_added_to_a_copy(tmp_path: Path) -> None:
    entry = {"case": "area/one", "args": ["--extra=1"], "reason": "off by default"}
    assert applied(tmp_path, entry)[0].data["args"] == ["--extra=1"]
    assert "args" not in CASE.data
    with pytest.raises(CaseError, match="--extra=1 is there already"):
        applied(tmp_path, entry, entry)
    with pytest.raises(CaseError, match="give"):
        applied(tmp_path, entry | {"args": []})


def test_one_step_is_changed_once_only(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="another entry says it already"):
        applied(tmp_path, CHANGE, CHANGE)


def test_a_start_that_was_recorded_so_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CaseError, match="is what was recorded"):
        applied(tmp_path, {"case": "area/refused", "start": "fail", "reason": "?"})


@pytest.mark.parametrize(
    "areas, passing, waiting, told",
    [
        ({"area", "arena"}, set(), {}, "does not exist: arena"),
        ({"area"}, set(), {"area/two": "?"}, "does not exist: area/two"),
        (set(), set(), {"area/one": "?"}, "nothing of area/refused"),
        ({"area"}, {"area/one"}, {}, "names twice: area/one"),
    ],
)
def test_expectations_account_for_every_case(areas: set[str], passing: set[str], waiting: dict[str, str], told: str) -> None:
    with pytest.raises(CaseError, match=told):
        Expectations(frozenset(areas), frozenset(passing), waiting).check([CASE, REFUSED])


def test_a_case_waits_once_only(tmp_path: Path) -> None:
    group = {"reason": "?", "cases": ["area/one"]}
    file = tmp_path / "expected.yaml"
    file.write_text(json.dumps({"expected_areas": [], "passing": [], "waiting": [group, group]}))
    with pytest.raises(CaseError, match="waits twice"):
        read_expectations(file)


def test_the_files_of_this_project_are_sound() -> None:
    assert suite.expectations().areas


def test_two_cases_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("area: x\ncases: [{name: y, why: z}]")
    with pytest.raises(CaseError, match="two cases are called x/y"):
        read_cases([tmp_path])
