"""`make serve` in a fresh clone, on a machine that has only Python and make."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from docs.conftest import is_ready
from packages.checkout import clean_environment, clone_to, run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1000)]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return clone_to(tmp_path_factory.mktemp("clone"))


def test_make_alone_lists_the_targets(clone: Path) -> None:
    shown = run(["make"], clone)
    assert "make serve" in shown
    assert "make test" in shown


def test_make_serve_serves_the_examples(clone: Path) -> None:
    http, grpc, metrics = Ports(share(worker_number())).take()
    log = clone.parent / "serve.log"
    command = ["make", "serve", f"HTTP_PORT={http}", f"GRPC_PORT={grpc}", f"METRICS_PORT={metrics}"]
    with log.open("wb") as target:
        process = subprocess.Popen(
            command,
            cwd=clone,
            env=clean_environment(),
            stdout=target,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    try:
        limit = time.monotonic() + 900
        while not is_ready(http) and process.poll() is None and time.monotonic() < limit:
            time.sleep(0.3)
        assert is_ready(http), log.read_text(errors="replace")
        assert "== serving examples/repository" in log.read_text(errors="replace")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
