"""Each recorded case against a server of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformance import suite
from conformance.runner.case import Case
from conformance.runner.play import play
from conformance.runner.ports import Ports, share
from conformance.runner.process import Settings
from conformance.summary import PROPERTY

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(300)]


def _parameters() -> list[object]:
    waiting = suite.expectations().waiting
    return [
        pytest.param(
            case,
            id=case.full_name,
            marks=[pytest.mark.xfail(reason=waiting[case.full_name], strict=True)] if case.full_name in waiting else [],
        )
        for case in suite.cases()
    ]


@pytest.fixture(scope="session")
def ports() -> Ports:
    return Ports(share(suite.worker_number()))


@pytest.mark.parametrize("case", _parameters())
def test_case(case: Case, ports: Ports, tmp_path: Path, record_property: Callable[[str, object], None]) -> None:
    record_property(PROPERTY, case.full_name)
    outcome = play(case, Settings(suite.command(), tmp_path), ports)
    if not outcome.passed:
        pytest.fail(f"{outcome.problem}\n\nwhy: {case.data['why']}\n\nserver.log:\n{outcome.log}", pytrace=False)
