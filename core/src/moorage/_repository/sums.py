"""SHA256SUMS: a list of the files of a version, by which it is known whether they are all there and whole.

The format is that of `sha256sum`: on each line the digest, a space, a space or `*`, and the path below the version's folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from moorage._repository.layout import SUMS
from moorage._repository.scan import ModelFolder
from moorage._storage import Copies, Wanted
from moorage.errors import StorageError
from moorage.storage import Entry, InPlaceStorage

_LINE: Final = re.compile(r"(?P<escaped>\\?)(?P<digest>[0-9a-fA-F]{64}) [ *](?P<path>.+)")
_ESCAPES: Final = {r"\\": "\\", r"\n": "\n", r"\r": "\r"}


def parse(text: str) -> dict[str, str]:
    """Path to digest, lower case. Raises ValueError, saying which line is none of a list of sums."""
    sums = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.rstrip("\r"))
        if match is None:
            raise ValueError(f"line {number} is not a SHA-256 sum, two spaces and a path")
        path = match["path"]
        if match["escaped"]:
            path = re.sub(r"\\[\\nr]", lambda found: _ESCAPES[found[0]], path)
        sums[path.removeprefix("./")] = match["digest"].lower()
    return sums


def doubt(model: ModelFolder, version: int, copies: Copies) -> str:
    """Why a version is not what its list of sums says; empty if it is. Raises StorageError."""
    try:
        sums = parse(model.repository.read(f"{model.folder.name}/{version}/{SUMS}").decode())
    except ValueError as error:
        return f"{SUMS}: {error}"
    if not sums:
        return f"{SUMS} lists no file"
    files = {entry.path: entry for entry in model.folder.entries if not entry.is_dir}
    missing = [path for path in sums if f"{version}/{path}" not in files]
    if missing:
        return f"{SUMS} lists '{missing[0]}', which is not there{f' ({len(missing)} files are missing)' if missing[1:] else ''}"
    with _local(model, version, [files[f"{version}/{path}"] for path in sums], copies) as folder:
        wrong = next((path for path, digest in sums.items() if _digest(folder / str(version) / path) != digest), None)
    return "" if wrong is None else f"'{wrong}' does not match its sum in {SUMS}"


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from error


@contextmanager
def _local(model: ModelFolder, version: int, entries: Sequence[Entry], copies: Copies) -> Iterator[Path]:
    """The folder of a model on this machine: where it lies, or one with copies of these files that is removed afterwards."""
    storage, url, name = model.repository.storage, model.repository.url, model.folder.name
    if isinstance(storage, InPlaceStorage):
        yield storage.local_path(url) / name
        return
    with closing(copies.obtain(Wanted(str(model.id), storage, url, name, version, entries))) as copy:
        yield copy.path
