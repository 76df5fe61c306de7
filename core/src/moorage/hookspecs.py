"""The hooks of a plugin. All are called at start or while a model is loaded, never for a request.

A plugin is a module (or object) behind an entry point of the group "moorage" with functions of these names, marked with
`hookimpl`:

    [project.entry-points.moorage]
    mybackend = "my_package.plugin"

The module must import no framework: it is imported whenever plugins are listed.
"""

from __future__ import annotations

from collections.abc import Iterable

import pluggy
from attrs import frozen

from moorage.backend import Backend, ModelMatch, Placement, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.control import ControlMode, ModelId
from moorage.storage import Storage

PROJECT = "moorage"
"""Name of the pluggy project and of the entry-point group."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@frozen
class StateChange:
    """A version of a model has entered a state; `reason` says why when it is unavailable."""

    model: ModelId
    version: int
    state: str
    """UNKNOWN, LOADING, READY, UNLOADING or UNAVAILABLE."""
    reason: str = ""


@hookspec
def storage_schemes() -> Iterable[type[Storage]]:  # type: ignore[empty-body]
    """Storage classes, each naming its URL schemes. Called once, at start. Two classes for one scheme are an error."""


@hookspec
def backends() -> Iterable[type[Backend]]:  # type: ignore[empty-body]
    """Backend classes. Called once, at start. Two classes with one name or platform are an error."""


@hookspec
def discover_model(files: VersionFiles) -> ModelMatch | None:
    """Which backend reads these files, by their names alone; None if this plugin's does not.

    Called when the configuration names neither backend nor platform, or names no file. Contents are not there yet. Different
    answers of two plugins are an error that names both.
    """


@hookspec
def select_model_file(config: ModelConfig, files: VersionFiles, device: Placement) -> str | None:
    """The file to load on this device; None leaves it to the core (`cc_model_filenames`, then `default_model_filename`).

    Called on a load thread, once for each device that instances are placed on.
    """


@hookspec
def complete_config(config: ModelConfig, files: VersionFiles) -> ModelConfig | None:
    """Fill in what the configuration leaves open, from the files; None if there is nothing to say.

    Called on a load thread, when the files are local and auto-completion is on, for the configuration's own backend only if the
    plugin looks (`config.backend`). What the user has written must stay, with the one exception that Triton makes: a Python
    model may raise `max_batch_size`. What the file's signature declares is filled in by the core; this hook is for the rest.
    """


@hookspec
def control_modes() -> Iterable[type[ControlMode]]:  # type: ignore[empty-body]
    """Control mode classes. Called once, at start. Two classes with one name are an error."""


@hookspec
def model_state_changed(change: StateChange) -> None:
    """A version has changed its state. Called on the server's event loop: return at once. Exceptions are logged and dropped."""
