"""What may happen to the files of a model that is loaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType


def truncate(version_path: Path) -> None:
    """Cut all files to nothing, as an upload over them does first."""
    for file in _files(version_path):
        os.truncate(file, 0)


def overwrite(version_path: Path) -> None:
    """Write other bytes into all files, in place."""
    for file in _files(version_path):
        content = file.read_bytes()
        with file.open("r+b") as target:
            target.write(bytes(byte ^ 0x5A for byte in content))


def delete(version_path: Path) -> None:
    """Remove the version's folder."""
    shutil.rmtree(version_path)


def _files(version_path: Path) -> Iterator[Path]:
    return (path for path in version_path.rglob("*") if path.is_file())


HARMS: Mapping[str, Callable[[Path], None]] = MappingProxyType(
    {"truncated": truncate, "overwritten": overwrite, "deleted": delete}
)
