"""Servers as processes: started together, awaited, and ended by their process id whatever happens."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import IO

from attrs import field, frozen

from moorage_bench.install import MissingPeerError

_READY_S = 90.0
_STOP_S = 10.0


@frozen
class Ports:
    """Ports on 127.0.0.1."""

    http: int
    grpc: int
    metrics: int

    @classmethod
    def free(cls) -> Ports:
        """Three ports that nobody listens on now."""
        with ExitStack() as stack:
            sockets = [stack.enter_context(closing(socket.socket())) for _ in range(3)]
            for one in sockets:
                one.bind(("127.0.0.1", 0))
            return cls(*(int(one.getsockname()[1]) for one in sockets))


@frozen
class ServerSpec:
    """A server to start. It is ready once `ready_path` answers 200 over HTTP."""

    name: str
    argv: tuple[str, ...]
    ports: Ports
    env: Mapping[str, str] = field(factory=dict)
    ready_path: str = "/v2/health/ready"


@frozen
class Running:
    """A server that answers."""

    spec: ServerSpec
    pid: int

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def ports(self) -> Ports:
        return self.spec.ports


@contextmanager
def serving(specs: Sequence[ServerSpec], logs: Path) -> Iterator[dict[str, Running]]:
    """Start all servers at once, wait until each is ready, and end them all on the way out.

    What they print goes to `logs`/NAME.log. A server that ends or is late raises MissingPeerError with its last lines.
    """
    logs.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        processes = [(spec, stack.enter_context(_process(spec, logs))) for spec in specs]
        for spec, process in processes:
            _await_ready(spec, process, logs)
        yield {spec.name: Running(spec, process.pid) for spec, process in processes}


@contextmanager
def _process(spec: ServerSpec, logs: Path) -> Iterator[subprocess.Popen[bytes]]:
    with _log(spec, logs).open("wb") as log:
        process = _start(spec, log)
        try:
            yield process
        finally:
            _end(process)


def _start(spec: ServerSpec, log: IO[bytes]) -> subprocess.Popen[bytes]:
    # Its own session, so that Ctrl-C reaches the benchmark alone, which then ends the servers in order.
    try:
        return subprocess.Popen(spec.argv, stdout=log, stderr=log, env={**os.environ, **spec.env}, start_new_session=True)
    except OSError as error:
        raise MissingPeerError(f"{spec.name}: cannot be started: {error}") from error


def _end(process: subprocess.Popen[bytes]) -> None:
    """SIGTERM, some seconds of grace, then SIGKILL to what is left of the session that the server leads."""
    try:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _await_ready(spec: ServerSpec, process: subprocess.Popen[bytes], logs: Path) -> None:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise MissingPeerError(f"{spec.name}: ended with {process.returncode} before it was ready: {_tail(spec, logs)}")
        if _answers(spec):
            return
        time.sleep(0.1)
    raise MissingPeerError(f"{spec.name}: not ready after {_READY_S:.0f} s: {_tail(spec, logs)}")


def _answers(spec: ServerSpec) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", spec.ports.http, timeout=2)
    with closing(connection):
        try:
            connection.request("GET", spec.ready_path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def _log(spec: ServerSpec, logs: Path) -> Path:
    return logs / f"{spec.name}.log"


def _tail(spec: ServerSpec, logs: Path) -> str:
    lines = _log(spec, logs).read_text(errors="replace").strip().splitlines()
    return " / ".join(lines[-3:]) or "it printed nothing"
