"""A server of the example repository, for the blocks that talk to one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from docs.fences import ROOT

BIN = Path(sys.executable).parent


@frozen
class ExampleServer:
    """A running server and how programs reach it."""

    ports: tuple[int, int, int]

    def run(self, command: list[str], limit: float = 100) -> subprocess.CompletedProcess[str]:
        """Run a program from the root of the repository, with the commands of this environment first in PATH."""
        env = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=limit, check=False)

    def addressed(self, code: str) -> str:
        """The code with the server's own ports in place of the default ones."""
        for default, port in zip((8000, 8001, 8002), self.ports, strict=True):
            code = code.replace(f"localhost:{default}", f"127.0.0.1:{port}")
        return code


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExampleServer]:
    folder = tmp_path_factory.mktemp("examples")
    shutil.copytree(ROOT / "examples" / "repository", folder / "repository")
    http, grpc, metrics = Ports(share(worker_number())).take()
    flags = [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    command = [str(BIN / "moorage"), "serve", f"--model-repository={folder / 'repository'}", *flags]
    log = folder / "server.log"
    with log.open("wb") as target:
        process = subprocess.Popen(command, stdout=target, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 100
        while not is_ready(http):
            if process.poll() is not None or time.monotonic() > limit:
                pytest.fail(f"the server of the examples did not start:\n{log.read_text(errors='replace')}", pytrace=False)
            time.sleep(0.1)
        yield ExampleServer((http, grpc, metrics))
    finally:
        process.terminate()
        try:
            process.wait(40)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
