"""What is to be brought from a remote repository, and whether it can be, and has been."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from moorage.errors import StorageError
from moorage.storage import Entry, Storage


@frozen(eq=False)
class Wanted:
    """Files of one version of a model: the paths of `entries` are below the model's `folder`, which is below `url`."""

    model: str
    storage: Storage
    url: str
    folder: str
    version: int
    entries: Sequence[Entry]

    @property
    def what(self) -> str:
        """The version as messages name it."""
        return f"model '{self.model}' version {self.version}"

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


def check_sizes(entries: Sequence[Entry], target: Path) -> None:
    """Raises StorageError for a file that is not there as a whole, which the storage should have done."""
    for entry in entries:
        file = target / entry.path
        size = file.stat().st_size if file.is_file() else 0
        if size != entry.size or not file.is_file():
            raise StorageError(f"'{entry.path}' has come with {size} bytes, not the {entry.size} that were listed")


def check_paths(wanted: Wanted) -> None:
    """Raises StorageError for what no folder of this machine can hold at these paths."""
    paths = {f"{wanted.folder}/{entry.path}" for entry in wanted.entries}
    for path in sorted(paths):
        parts = path.split("/")
        foreign = os.sep != "/" and (os.sep in path or ":" in path)
        if foreign or "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise StorageError(f"model repository {wanted.url}: no file of this machine can be called '{path}'; rename it")
        above = next((folder for depth in range(1, len(parts)) if (folder := "/".join(parts[:depth])) in paths), None)
        if above is not None:
            both = f"'{above}' is a file, and a folder, too, as there is '{path}'; rename one of them"
            raise StorageError(f"model repository {wanted.url}: {both}")
