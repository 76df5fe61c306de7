"""The recorded cases as this project expects them: with the differences put over, and the list of those that must pass."""

from __future__ import annotations

import os
import shlex
import sys
from functools import cache
from pathlib import Path

from conformance.runner.case import Case, read_cases
from conformance.runner.differences import apply, read_differences
from conformance.runner.expectations import Expectations, read_expectations

HERE = Path(__file__).parent
CASES = HERE / "cases"
DIFFERENCES = HERE / "differences.yaml"
EXPECTED = HERE / "expected.yaml"
FLAGS = "--model-repository={repo} --http-port {http_port} --grpc-port {grpc_port} --metrics-port {metrics_port} {args}"


@cache
def cases() -> tuple[Case, ...]:
    return tuple(apply(read_differences(DIFFERENCES), read_cases([CASES])))


@cache
def expectations() -> Expectations:
    read = read_expectations(EXPECTED)
    read.check(cases())
    return read


def command() -> str:
    """The template that starts the server: of this environment, or as MOORAGE_CONFORMANCE_COMMAND says."""
    server = Path(sys.executable).with_name("moorage")
    return os.environ.get("MOORAGE_CONFORMANCE_COMMAND", f"{shlex.quote(str(server))} serve {FLAGS}")


def worker_number() -> int:
    """Which of the processes of a parallel test run this is."""
    return int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
