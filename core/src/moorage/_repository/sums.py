"""SHA256SUMS: a list of the files of a version, by which it is known whether they are all there and whole.

The format is that of `sha256sum`: on each line the digest, a space, a space or `*`, and the path below the version's folder.
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from moorage._repository.layout import SUMS
from moorage._repository.scan import ModelFolder
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


def doubt(model: ModelFolder, version: int) -> str:
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
    wrong = next((path for path, digest in sums.items() if _digest(model, files[f"{version}/{path}"]) != digest), None)
    return "" if wrong is None else f"'{wrong}' does not match its sum in {SUMS}"


def _digest(model: ModelFolder, entry: Entry) -> str:
    with _local(model, entry) as file:
        try:
            with file.open("rb") as content:
                return hashlib.file_digest(content, "sha256").hexdigest()
        except OSError as error:
            raise StorageError(f"cannot read {file}: {error.strerror}") from error


@contextmanager
def _local(model: ModelFolder, entry: Entry) -> Iterator[Path]:
    """A file of the model on this machine: where it lies, or a copy that is removed afterwards."""
    storage, url = model.repository.storage, model.repository.url
    path = f"{model.folder.name}/{entry.path}"
    if isinstance(storage, InPlaceStorage):
        yield storage.local_path(url) / path
        return
    with tempfile.TemporaryDirectory(prefix="moorage-sums-") as folder:
        model.repository.download([entry._replace(path=path)], Path(folder))
        yield Path(folder) / path
