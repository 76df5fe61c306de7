"""A copy of the checkout as git would clone it, and programs run in it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from docs.conftest import is_ready

ROOT: Final = Path(__file__).parents[2]


def tracked_files() -> list[Path]:
    """The files that git knows or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).is_file()]


def clone_to(target: Path) -> Path:
    """Copy what a clone would have; nothing that is built or installed."""
    for file in tracked_files():
        (target / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / file, target / file)
    return target


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what an active virtual environment or a test run puts there."""
    foreign = ("VIRTUAL_ENV", "PYTHON", "PYTEST", "COVERAGE", "MAKE", "MFLAGS")
    return {key: value for key, value in os.environ.items() if not key.startswith(foreign)} | more


def run(command: list[str], cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextlib.contextmanager
def serving(command: list[str], http: int, *, cwd: Path, env: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run a program that serves on a port until the block ends; what it says goes to the log."""
    with log.open("wb") as target:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
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
        yield
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
