"""Steps that look at the process, at files and at shared memory."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from pathlib import Path

from conformance.runner import tensors
from conformance.runner.case import Seen, Step
from conformance.runner.session import Session

SHARED_MEMORY = Path("/dev/shm")


def send_signal(session: Session, step: Step) -> None:
    assert session.server.popen is not None
    session.server.popen.send_signal(getattr(signal, "SIG" + step["signal"]))


def wait_exit(session: Session, step: Step) -> Seen:
    assert session.server.popen is not None
    try:
        return {"exit_code": session.server.popen.wait(step["wait_exit"].get("within", 30))}
    except subprocess.TimeoutExpired:
        return {"exit_code": "still running"}


def tcp_refused(session: Session, step: Step) -> Seen:
    port = int(session.variables[step["tcp_refused"] + "_port"])
    with socket.socket() as probe:
        probe.settimeout(3)
        return {"refused": probe.connect_ex(("127.0.0.1", port)) != 0}


def _segment(key: str) -> Path:
    return SHARED_MEMORY / key.lstrip("/")


def shm_create(session: Session, step: Step) -> None:
    spec = step["shm_create"]
    raw = b"".join(tensors.encode(one["datatype"], one["data"]) for one in spec.get("tensors", []))
    session.shared_memory.append(spec["key"])
    _segment(spec["key"]).write_bytes(raw.ljust(spec.get("size", len(raw)), b"\0"))


def shm_write(session: Session, step: Step) -> None:
    spec = step["shm_write"]
    with _segment(spec["key"]).open("r+b") as target:
        target.seek(spec.get("offset", 0))
        target.write(tensors.encode(spec["datatype"], spec["data"]))


def shm_read(session: Session, step: Step) -> Seen:
    spec = step["shm_read"]
    with _segment(spec["key"]).open("rb") as source:
        source.seek(spec.get("offset", 0))
        return {"data": tensors.decode(spec["datatype"], source.read(spec["bytes"]))}


def file_written(session: Session, step: Step) -> Seen:
    """Whether a file was written, and which of the words it holds."""
    path = Path(step["file"])
    limit = time.monotonic() + step.get("within", 5)
    while not _has_content(path) and time.monotonic() < limit:
        time.sleep(0.1)
    if not _has_content(path):
        return {"written": False}
    text = path.read_text(errors="replace")
    return {"written": True} | ({"holds": [w for w in step["words"] if w in text]} if step.get("words") else {})


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


KINDS = {
    "signal": send_signal,
    "wait_exit": wait_exit,
    "tcp_refused": tcp_refused,
    "shm_create": shm_create,
    "shm_write": shm_write,
    "shm_read": shm_read,
    "file": file_written,
}
