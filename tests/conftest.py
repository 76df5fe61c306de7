"""What all tests across the packages share."""

from __future__ import annotations

import pytest

from conformance import summary


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """After the tests: the conformance cases by area, if any ran."""
    stats = terminalreporter.stats
    found = [one for key in ("passed", "failed", "xfailed", "xpassed") for one in stats.get(key, [])]
    reports = [one for one in found if isinstance(one, pytest.TestReport)]
    counts = summary.count(reports)
    if not counts:
        return
    terminalreporter.section("conformance with recorded cases")
    for line in summary.table(counts):
        terminalreporter.write_line(line)
    for name in summary.newly_passing(reports):
        terminalreporter.write_line(f"passes now, take it off the waiting list in expected.yaml: {name}")
