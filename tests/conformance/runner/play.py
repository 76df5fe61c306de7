"""A whole case: lay out, start, step by step, stop."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from attrs import define, field

from conformance.runner import grpc_steps, http_steps, repository, system_steps, timed_steps
from conformance.runner.case import Case, Seen, Step, label
from conformance.runner.compare import allow_client_error, differs, one_error_status, short
from conformance.runner.ports import Ports
from conformance.runner.process import Settings, http_alive
from conformance.runner.session import Do, Session

# A step is of the first kind whose key it has: kinds that hold other steps, or whose key is a plain word, come last.
KINDS: Mapping[str, Do] = {
    **http_steps.KINDS,
    **grpc_steps.KINDS,
    **repository.KINDS,
    **timed_steps.KINDS,
    **system_steps.KINDS,
}


@define
class Outcome:
    """How a case went: `problem` is empty if it passed, `trail` is what each step observed."""

    case: Case
    problem: str = ""
    seconds: float = 0
    log: str = ""
    trail: list[tuple[Step, Seen]] = field(factory=list)

    @property
    def passed(self) -> bool:
        return not self.problem


def play(case: Case, settings: Settings, ports: Ports, *, record: bool = False) -> Outcome:
    """Run a case. With `record`, what is observed becomes what is expected, in `case.data`."""
    outcome = Outcome(case)
    began = time.monotonic()
    session = Session.open(case, settings, ports, KINDS)
    try:
        outcome.problem = _start(session) or _steps(session, outcome, record)
    except Exception as problem:
        outcome.problem = f"runner: {problem!r}"
        if settings.verbose:
            raise
    finally:
        outcome.log = session.server.log_tail()
        session.close()
        outcome.seconds = time.monotonic() - began
    return outcome


def _start(session: Session) -> str:
    repository.lay_out(session)
    data = session.case.data
    values = {key: session.variables[key] for key in ("repo", "http_port", "grpc_port", "metrics_port", "tmp")}
    session.server.start(values, session.fill(data.get("args", [])), session.fill(data.get("env", {})))
    timeout = data.get("start_timeout", session.settings.start_timeout)
    got = session.server.wait_started(lambda: _alive(session), timeout)
    want = "refused" if data.get("start", "ok") == "fail" else "started"
    return "" if got == want else f"server: expected {want}, got {got}"


def _alive(session: Session) -> bool:
    data = session.case.data
    if data.get("live_by") == "grpc":
        return grpc_steps.server_live(session)
    path = data.get("live_path", "/v2/health/live")
    return http_alive(session.http_port, path, any_status=data.get("live_any_status", False))


def _steps(session: Session, outcome: Outcome, record: bool) -> str:
    for number, step in enumerate(session.case.steps, 1):
        seen = session.observe(step)
        if seen is not None:
            outcome.trail.append((step, seen))
        problem = _record(session, step, seen) if record else _compare(session, step, seen)
        if problem:
            return f"step {number} ({label(step)}): {problem}"
    return ""


def _record(session: Session, step: Step, seen: Seen | None) -> str:
    step.pop("expect", None)
    if seen is not None:
        step["expect"] = seen
    return f"wait_until never reached; last {short(session.last_seen, 600)}" if seen == {"reached": False} else ""


def _compare(session: Session, step: Step, seen: Seen | None) -> str:
    if seen is None:
        return ""
    if "expect" not in step:
        return "nothing recorded"
    want: Any = step["expect"]
    got: Any = seen
    if not session.case.data.get("server_faults"):
        want = allow_client_error(want, got)
    if session.settings.any_error_status:
        want, got = one_error_status(want), one_error_status(got)
    problem = differs(want, got)
    if problem and got == {"reached": False}:
        problem += f" (last {short(session.last_seen, 300)})"
    return problem or ""
