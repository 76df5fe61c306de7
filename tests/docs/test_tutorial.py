"""The shell blocks of each tutorial, one after the other in one shell and an empty folder, as a reader would."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from docs.fences import ROOT, SHELLS, read

TUTORIALS = sorted((ROOT / "docs" / "tutorial").glob("*.md"))


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    ports = Ports(share(worker_number())).take()
    code = "".join(block.code for block in read(page) if block.language in SHELLS)
    for default, port in zip((8000, 8001, 8002), ports, strict=True):
        code = code.replace(f"localhost:{default}", f"127.0.0.1:{port}")
    flags = dict(zip(("HTTP", "GRPC", "METRICS"), ports, strict=True))
    env = os.environ | {f"MOORAGE_{name}_PORT": str(port) for name, port in flags.items()}
    env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
    script = f"set -meuo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{code}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_there_is_a_tutorial() -> None:
    assert TUTORIALS
