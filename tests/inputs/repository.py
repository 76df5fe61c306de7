"""Writing model repositories."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

Files = Mapping[str, str | bytes]


def write(root: Path, files: Files) -> Path:
    """Files below `root` by their paths; a path that ends with a slash is a folder. Returns `root`."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        target = root / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def model(name: str, files: Files) -> dict[str, str | bytes]:
    """The files of a model as files of a repository."""
    return {f"{name}/{path}": content for path, content in files.items()}
