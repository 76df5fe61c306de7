"""The server under test as a process of its own."""

from __future__ import annotations

import http.client
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from attrs import frozen


@frozen
class Settings:
    """How servers are started and stopped."""

    command: str
    """Shell template with {repo} {http_port} {grpc_port} {metrics_port} {args} and, if wanted, {tmp}."""
    workdir: Path
    start_timeout: float = 60
    """Seconds until a server must be live."""
    stop_timeout: float = 6
    """Seconds between SIGTERM and SIGKILL."""
    keep: bool = False
    """Leave each case's folder, with its repository and server.log."""
    any_error_status: bool = False
    verbose: bool = False


class ServerProcess:
    """A server started from the template, in a session of its own so that its children end with it."""

    def __init__(self, settings: Settings, cwd: Path) -> None:
        self._settings = settings
        self._cwd = cwd
        self.log = cwd / "server.log"
        self.popen: subprocess.Popen[bytes] | None = None

    def start(self, values: Mapping[str, str], args: list[str], env: Mapping[str, str]) -> None:
        command = self._settings.command
        for key, value in {**values, "args": shlex.join(args)}.items():
            command = command.replace("{" + key + "}", value)
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                ["/bin/sh", "-c", "exec " + command],
                stdout=log,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **env},
                cwd=self._cwd,
            )

    def wait_started(self, alive: Callable[[], bool], timeout: float) -> str:
        """`started`, `refused`, or a sentence on what else happened."""
        assert self.popen is not None
        limit = time.monotonic() + timeout
        while time.monotonic() < limit:
            code = self.popen.poll()
            if code is not None:
                return _ended(code)
            if alive():
                time.sleep(0.3)  # the other ports may open a moment after the first
                return "started"
            time.sleep(0.05)
        return "neither started nor exited in time"

    def close(self) -> None:
        if self.popen is None:
            return
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(self._settings.stop_timeout)
        with suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)  # whatever is left of the server's own session
        self.popen.wait()

    def log_tail(self, size: int = 2000) -> str:
        return self.log.read_text(errors="replace")[-size:] if self.log.exists() else ""


def _ended(code: int) -> str:
    if code in {126, 127}:
        return "could not be run, look at the command"
    return "refused" if code != 0 else "exited with code 0"


def http_alive(port: int, path: str, *, any_status: bool) -> bool:
    """Whether the health endpoint answers 200, or at all."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200 or any_status
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
