"""Steps and beginnings that write model repositories."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.runner import tensors
from conformance.runner.case import CaseError, Step
from conformance.runner.session import Session


def lay_out(session: Session) -> None:
    """Write the repositories that the case starts with."""
    (session.root / "repo").mkdir()
    for name, content in (session.case.data.get("repo") or {}).items():
        put(session, session.root / "repo", name, content)
    for repository, tree in (session.case.data.get("extra_repos") or {}).items():
        (session.root / repository).mkdir(parents=True, exist_ok=True)
        for name, content in tree.items():
            put(session, session.root / repository, name, content)


def put(session: Session, folder: Path, name: str, content: Any) -> None:
    """Write a file in one move; a name that ends in a slash is a folder."""
    where = folder / name
    if name.endswith("/"):
        where.mkdir(parents=True, exist_ok=True)
        return
    where.parent.mkdir(parents=True, exist_ok=True)
    fresh = where.with_name(where.name + ".tmp~")
    fresh.write_bytes(_raw(session, content))
    fresh.replace(where)


def _raw(session: Session, content: Any) -> bytes:
    if isinstance(content, dict):
        return bytes.fromhex(content["hex"]) if "hex" in content else tensors.encode(content["datatype"], content["data"])
    return session.fill(library_text(session, content or "")).encode()


def library_text(session: Session, content: str) -> str:
    """The text itself, or the file of the library that it names as `@lib/…`."""
    if content.startswith("@lib/"):
        return (session.case.lib / content[5:]).read_text(encoding="utf-8")
    return content


def change(session: Session, step: Step) -> None:
    for one in step["fs"]:
        ((kind, what),) = one.items()
        if kind not in CHANGES:
            raise CaseError(f"unknown repository change {kind}")
        CHANGES[kind](session, what)


def _write(session: Session, files: dict[str, Any]) -> None:
    for name, content in files.items():
        target = session.path(name)
        put(session, target.parent, target.name + ("/" if name.endswith("/") else ""), content)


def _delete(session: Session, names: str | list[str]) -> None:
    """In one move: a half deleted model is another matter."""
    for name in [names] if isinstance(names, str) else names:
        bin_ = session.root / ".deleted" / str(time.time_ns())
        bin_.parent.mkdir(exist_ok=True)
        session.path(name).rename(bin_)


def _move(session: Session, what: list[str]) -> None:
    source, target = map(session.path, what)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def _copy(session: Session, what: list[str]) -> None:
    source, target = map(session.path, what)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy(source, target)


def _link(session: Session, what: list[str]) -> None:
    session.path(what[1]).symlink_to(session.path(what[0]))


def _touch(session: Session, name: str) -> None:
    os.utime(session.path(name))


def _mkdir(session: Session, name: str) -> None:
    session.path(name).mkdir(parents=True)


CHANGES: dict[str, Callable[[Session, Any], None]] = {
    "write": _write,
    "delete": _delete,
    "move": _move,
    "copy": _copy,
    "touch": _touch,
    "link": _link,
    "mkdir": _mkdir,
}

KINDS = {"fs": change}
