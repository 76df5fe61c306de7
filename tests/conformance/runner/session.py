"""One case against one freshly started server: the state that its steps share."""

from __future__ import annotations

import hashlib
import http.client
import re
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import grpc
from attrs import define, field

from conformance.runner.case import Case, CaseError, Seen, Step
from conformance.runner.compare import short
from conformance.runner.observation import present
from conformance.runner.ports import Ports
from conformance.runner.process import ServerProcess, Settings

VARIABLE = re.compile(r"\$\{([a-z_.0-9]+)\}")

Do = Callable[["Session", Step], Seen | None]
"""Carries out a step; None when there is nothing to compare."""

T = TypeVar("T")


@define
class Job:
    """A step that runs on a thread of its own."""

    thread: threading.Thread
    stop: threading.Event
    seen: Seen | None = None


@define
class Session:
    """State of a running case. `kinds` says how each kind of step is carried out."""

    case: Case
    settings: Settings
    kinds: Mapping[str, Do]
    root: Path
    http_port: int
    grpc_port: int
    metrics_port: int
    variables: dict[str, str]
    words: list[str]
    server: ServerProcess
    channel: grpc.Channel | None = None
    connections: dict[str, http.client.HTTPConnection] = field(factory=dict)
    jobs: dict[str, Job] = field(factory=dict)
    shared_memory: list[str] = field(factory=list)
    last_seen: Seen | None = None

    @classmethod
    def open(cls, case: Case, settings: Settings, ports: Ports, kinds: Mapping[str, Do]) -> Session:
        root = Path(tempfile.mkdtemp(prefix="case-", dir=settings.workdir))
        http_port, grpc_port, metrics_port = ports.take()
        variables = {
            "repo": str(root / "repo"),
            "tmp": str(root),
            "uid": hashlib.sha256(str(root).encode()).hexdigest()[:10],
            "http_port": str(http_port),
            "grpc_port": str(grpc_port),
            "metrics_port": str(metrics_port),
        }
        extra: dict[str, Any] = case.data.get("extra_repos") or {}
        variables |= {f"repo.{name}": str(root / name) for name in extra}
        trees = [case.data.get("repo") or {}, *extra.values()]
        words = sorted({path.split("/")[0] for tree in trees for path in tree} | set(case.data.get("words", [])))
        server = ServerProcess(settings, root)
        return cls(case, settings, kinds, root, http_port, grpc_port, metrics_port, variables, words, server)

    def fill(self, value: T) -> T:
        """`${…}` replaced everywhere in the value."""
        return _mapped(value, lambda text: VARIABLE.sub(lambda m: self.variables.get(m[1], m[0]), text))

    def unfill(self, value: T) -> T:
        """This run's paths back to `${…}`, longest first."""
        names = sorted((n for n in self.variables if not n.endswith("_port")), key=lambda n: -len(self.variables[n]))

        def back(text: str) -> str:
            for name in names:
                text = text.replace(self.variables[name], "${" + name + "}")
            return text

        return _mapped(value, back, keys=False)

    def path(self, name: str) -> Path:
        """A path of the main repository, or of the case's folder if it starts with `@`."""
        return self.root / name[1:] if name.startswith("@") else self.root / "repo" / name

    def do(self, step: Step) -> Seen | None:
        kind = next((kind for kind in self.kinds if kind in step), None)
        if kind is None:
            raise CaseError(f"unknown step: {short(step)}")
        return self.kinds[kind](self, self.fill(step))

    def observe(self, step: Step) -> Seen | None:
        """Carry out a step; what was observed, in the form that is compared."""
        seen = self.do(step)
        return None if seen is None else present(self.unfill(seen), step, self.words)

    def spawn(self, name: str, work: Callable[[Job], Seen | None]) -> None:
        """Run the work on a thread; a `join` or `stop` step takes what it has seen."""

        def body() -> None:
            try:
                job.seen = work(job)
            except Exception as problem:  # shown as the observation
                job.seen = {"failed": repr(problem)}

        job = Job(threading.Thread(target=body, daemon=True), threading.Event())
        self.jobs[name] = job
        job.thread.start()

    def close(self) -> None:
        for job in self.jobs.values():
            job.stop.set()
        for connection in self.connections.values():
            connection.close()
        if self.channel is not None:
            self.channel.close()
        self.server.close()
        for name in self.shared_memory:
            (Path("/dev/shm") / name.lstrip("/")).unlink(missing_ok=True)
        if not self.settings.keep:
            shutil.rmtree(self.root, ignore_errors=True)


def _mapped(value: T, change: Callable[[str], str], *, keys: bool = True) -> T:
    return cast("T", _map_text(value, change, keys=keys))


def _map_text(value: Any, change: Callable[[str], str], *, keys: bool = True) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_map_text(item, change, keys=keys) for item in value]
    if isinstance(value, dict):
        return {change(key) if keys else key: _map_text(item, change, keys=keys) for key, item in value.items()}
    return value
