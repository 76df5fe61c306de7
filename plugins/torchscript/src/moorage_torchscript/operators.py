"""Libraries with operators of the user's own, which `model_operations { op_library_filename }` names.

A library that PyTorch cannot take ends the process that loads it, so each is tried in another process first. PyTorch never
gives up a library that it has.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Final

from moorage.backend import LoadContext, operator_libraries

_TRIAL: Final = "import sys, torch\nfor path in sys.argv[1:]:\n    torch.ops.load_library(path)"
_PATIENCE_SECONDS: Final = 300


class OperatorLibraries:
    """The libraries that this process has loaded, each from a copy of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._copies: dict[str, Path] = {}

    def load_for(self, torch: Any, context: LoadContext) -> None:
        """Load the libraries of a model that are not there yet. Raises ConfigError that names the one which cannot be."""
        for library in operator_libraries(context):
            content = library.path.read_bytes()
            with self._lock:
                problem = self._load(torch, library.name, content)
            if problem:
                advice = "build it for the PyTorch that is installed here; a changed library needs a new server"
                raise library.fault(f"cannot be loaded: {problem}", advice)

    def _load(self, torch: Any, name: str, content: bytes) -> str:
        """Load a library unless it is there; what is wrong with it, or ""."""
        digest = hashlib.sha256(content).hexdigest()
        if digest in self._copies:
            return ""
        copy = self._folder_of_copies() / f"{digest[:16]}-{Path(name).name}"
        copy.write_bytes(content)
        problem = tried([*self._copies.values(), copy])
        if problem:
            copy.unlink()
            return problem
        torch.ops.load_library(str(copy))
        self._copies[digest] = copy
        return ""

    def _folder_of_copies(self) -> Path:
        """A folder that goes with this object, or with the process."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="moorage-torchscript-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


def tried(paths: list[Path]) -> str:
    """Load libraries in a process of their own, one after the other; why it did not get through, or ""."""
    command = [sys.executable, "-c", _TRIAL, *map(str, paths)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_PATIENCE_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"loading it takes longer than {_PATIENCE_SECONDS} seconds"
    return _reason(done.stderr, done.returncode) if done.returncode else ""


def _reason(text: str, code: int) -> str:
    """What a process said last, or what a C++ exception said that ended it."""
    thrown = re.search(r"what\(\):\s*(.+)", text)
    lines = [line for line in text.splitlines() if line.strip()]
    said = thrown[1] if thrown else lines[-1] if lines else ""
    return said.strip()[:500] or f"the process that tried it ended with {code}"


libraries: Final = OperatorLibraries()
"""Those of this process: PyTorch knows no other extent."""
