"""The plugin's hooks. Nothing here imports PyTorch."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.hookspecs import hookimpl
from moorage_torchscript.backend import ARCHIVE_FILE, ARCHIVE_PLATFORM, DEFAULT_FILE, TorchBackend


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "pytorch"."""
    return [TorchBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A file `model.pt` (TorchScript) or, where there is none, `model.pt2` (an exported or compiled program)."""
    names = files.top_level()
    if DEFAULT_FILE in names:
        return ModelMatch(TorchBackend.name, TorchBackend.platforms[0], DEFAULT_FILE)
    if ARCHIVE_FILE in names:
        return ModelMatch(TorchBackend.name, ARCHIVE_PLATFORM, ARCHIVE_FILE)
    return None
