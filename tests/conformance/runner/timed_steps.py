"""Steps that wait, repeat, or run beside others."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor

from conformance.runner.case import Seen, Step
from conformance.runner.compare import matches
from conformance.runner.grpc_steps import open_channel
from conformance.runner.session import Job, Session


def sleep(session: Session, step: Step) -> None:
    time.sleep(step["sleep"])


def wait_until(session: Session, step: Step) -> Seen:
    """Repeat a step until the partial match fits what it observes."""
    wait = step["wait_until"]
    limit = time.monotonic() + wait.get("within", 20)
    session.last_seen = None
    while time.monotonic() < limit:
        session.last_seen = session.observe(dict(step["step"]))
        if matches(wait["match"], session.last_seen):
            return {"reached": True}
        time.sleep(wait.get("every", 0.1))
    return {"reached": False}


def background(session: Session, step: Step) -> None:
    session.spawn(step["background"], lambda job: session.observe(step["step"]))
    time.sleep(step.get("head_start", 0.3))


def _outcome(job: Job, timeout: float) -> Seen:
    job.thread.join(timeout)
    return job.seen if job.seen is not None else {"failed": "did not finish"}


def join(session: Session, step: Step) -> Seen:
    return _outcome(session.jobs[step["join"]], step.get("timeout", 60))


def hammer(session: Session, step: Step) -> None:
    """Repeat a step until a `stop`, which compares the set of statuses."""
    if "grpc" in step["step"]:
        open_channel(session)

    def work(job: Job) -> Seen:
        results, count = set(), 0
        while not job.stop.is_set():
            seen = session.observe(step["step"]) or {}
            results.add(str(seen.get("status", seen.get("code", seen.get("connection")))))
            count += 1
            time.sleep(step.get("every", 0.01))
        return {"results": sorted(results), "calls": "some" if count > 3 else "too few"}

    session.spawn(step["hammer"], work)
    time.sleep(step.get("head_start", 0.3))


def stop(session: Session, step: Step) -> Seen:
    job = session.jobs[step["stop"]]
    job.stop.set()
    return _outcome(job, step.get("timeout", 30))


def parallel(session: Session, step: Step) -> Seen:
    """Run steps at the same time, each started `gap` seconds after the one before."""
    futures: list[Future[Seen | None]] = []
    with ThreadPoolExecutor(len(step["parallel"])) as pool:
        for one in step["parallel"]:
            futures.append(pool.submit(session.observe, one))
            time.sleep(step.get("gap", 0))
    return {"all": [future.result() for future in futures]}


KINDS = {
    "sleep": sleep,
    "wait_until": wait_until,
    "background": background,
    "join": join,
    "hammer": hammer,
    "stop": stop,
    "parallel": parallel,
}
