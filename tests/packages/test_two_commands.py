"""`make serve` in a fresh clone, on a machine that has only Python and make."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from packages.checkout import clean_environment, clone_to, run, serving

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
    with serving(command, http, cwd=clone, env=clean_environment(), log=log):
        assert "== serving examples/repository" in log.read_text(errors="replace")
