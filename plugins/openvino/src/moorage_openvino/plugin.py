"""The plugin's hooks. Nothing here imports OpenVINO."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.backend import Backend, ModelMatch, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.hookspecs import hookimpl
from moorage_openvino.backend import DEFAULT_FILE, OTHER_FILES, OpenVinoBackend


@hookimpl
def backends() -> Iterable[type[Backend]]:
    """The backend "openvino"."""
    return [OpenVinoBackend]


@hookimpl
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """A file `model.xml`. Other formats that OpenVINO reads are other backends' too: for them the configuration names it."""
    if DEFAULT_FILE not in files.names:
        return None
    return ModelMatch(OpenVinoBackend.name, "", DEFAULT_FILE)


@hookimpl
def select_model_file(config: ModelConfig, files: VersionFiles) -> str | None:
    """Without a `model.xml`, the model of another format that is there under its usual name."""
    there = files.top_level()
    if (
        config.backend != OpenVinoBackend.name
        or config.default_model_filename not in ("", DEFAULT_FILE)
        or DEFAULT_FILE in there
    ):
        return None
    return next((name for name in OTHER_FILES if name in there), None)
