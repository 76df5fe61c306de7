"""The files of a version on this machine: where they lie, or a copy of those of a remote repository."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve

from moorage._repository.spec import VersionSpec
from moorage._storage import Copies, Copy, Wanted
from moorage.errors import Unsupported


class LocalFiles:
    """Files that a loaded model may use until this is closed."""

    def __init__(self, spec: VersionSpec, copy: Copy | None = None) -> None:
        """`copy` is that of the files if they are not on this machine."""
        self._spec: VersionSpec | None = spec  # whose storage may have made the files, and remove them with itself
        self._copy = copy
        folder = spec.files.model_path if copy is None else copy.path
        if folder is None:
            raise Unsupported(f"model '{spec.id}': its repository {spec.repository} is not on this machine")
        self.folder: Path = folder
        """The model's folder."""
        self.path: Path = spec.files.path or folder / str(spec.version)
        """The version's folder."""

    def of(self, spec: VersionSpec) -> VersionSpec:
        """A spec of the same files, with these places."""
        return evolve(spec, files=evolve(spec.files, path=self.path, model_path=self.folder))

    def close(self) -> None:
        """Nobody uses the files any more: remove them if they are a copy."""
        self._spec = None
        if self._copy is not None:
            self._copy.close()


def localised(spec: VersionSpec, copies: Copies) -> LocalFiles:
    """The files of a version. Blocks while they are brought from a remote repository. Raises StorageError naming the model."""
    if spec.files.path is not None:
        return LocalFiles(spec)
    wanted = Wanted(str(spec.id), spec.storage, spec.repository, spec.folder, spec.version, spec.entries)
    return LocalFiles(spec, copies.obtain(wanted))
