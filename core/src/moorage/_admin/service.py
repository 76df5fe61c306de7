"""Answers questions about the server and its models, and passes on requests to load and unload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from attrs import frozen

from moorage import __version__
from moorage._admin import describe, listing
from moorage._admin.readiness import Readiness, Standing
from moorage._admin.values import IndexEntry, ModelMetadata, ModelStatistics, Reloaded, ServerMetadata
from moorage._control.forecast import Step
from moorage._execution import Servable
from moorage._lifecycle.manager import Manager
from moorage._lifecycle.serving import ServingMap
from moorage.config.schema import ModelConfig
from moorage.control import ControlMode, LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import (
    Code,
    ErrorRecord,
    Forbidden,
    Internal,
    InvalidArgument,
    MoorageError,
    NotFound,
    Unavailable,
    Unsupported,
)
from moorage.types import LATEST

EXTENSIONS = (
    "classification",
    "sequence",
    "model_repository",
    "model_repository(unload_dependents)",
    "schedule_policy",
    "model_configuration",
    "system_shared_memory",
    "cuda_shared_memory",
    "binary_tensor_data",
    "parameters",
    "statistics",
    "trace",
    "logging",
)


class LogControl(Protocol):
    """The log's settings, as the logging extension reads and changes them."""

    def settings(self) -> dict[str, bool | int | str]: ...

    def update(self, changes: Mapping[str, object]) -> None: ...


class RepositoryView(Protocol):
    """What is asked of the control of models beside what its mode decides."""

    async def look(self) -> Snapshot:
        """Look at the repositories, with no effect on what is loaded."""

    async def plan(self, *, loaded: bool) -> list[Step]:
        """What loading everything as it lies in the repositories would do."""

    def made_of_requests(self) -> frozenset[ModelId]:
        """The wanted models whose files came with a load."""


@frozen
class AdminSettings:
    """`allow_model_override` lets clients bring files of a model along with a load."""

    server_name: str = "triton"
    readiness: Readiness = Readiness()
    allow_model_override: bool = False


class AdminService:
    """Everything about models that is not an inference. Coroutines run on the server's event loop, plain methods anywhere."""

    def __init__(
        self,
        *,
        serving: ServingMap[Servable],
        manager: Manager[Servable],
        control: RepositoryView,
        mode: ControlMode,
        log: LogControl,
        settings: AdminSettings,
    ) -> None:
        self._serving = serving
        self._manager = manager
        self._control = control
        self._mode = mode
        self._log = log
        self._settings = settings
        self._open = False
        self._initial: frozenset[ModelId] = frozenset()

    def open(self, initial: Iterable[ModelId] = ()) -> None:
        """The start is over: from now on the server may be ready. `initial` are the models of the start."""
        self._initial = frozenset(initial)
        self._open = True

    def shut(self) -> None:
        """The server is about to end: it is not ready any more."""
        self._open = False

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        """Whether requests should be sent here: the start is over, the end has not begun, no model is waited for."""
        if not self._open:
            return False
        manager = self._manager
        standing = Standing(self._serving.models(), manager.coming(), manager.failed())
        return not self._settings.readiness.awaited(standing, self._initial)

    def model_ready(self, name: str, version: int = LATEST) -> bool:
        try:
            self._serving.get(name, version)
        except MoorageError:
            return False
        return True

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata(self._settings.server_name, __version__, EXTENSIONS)

    def model_metadata(self, name: str, version: int = LATEST) -> ModelMetadata:
        """Raises NotFound, or RequestError if the name is ambiguous."""
        versions = tuple(self._serving.versions(name)) if version == LATEST else (version,)
        return describe.metadata(self._servable(name, version).shown, versions)

    def model_config(self, name: str, version: int = LATEST) -> ModelConfig:
        """The configuration that is served. Raises NotFound, or RequestError if the name is ambiguous."""
        return self._servable(name, version).config

    def statistics(self, name: str = "", version: int = LATEST) -> list[ModelStatistics]:
        """The counts of a version, of all versions of a model, or of all models. Raises InvalidArgument for an unknown one."""
        if not name:
            serving = self._serving.models()
            return [describe.statistics(s, key.namespace) for key, versions in serving.items() for s in versions.values()]
        try:
            versions = tuple(self._serving.versions(name)) if version == LATEST else (version,)
            return [describe.statistics(self._servable(name, number)) for number in versions]
        except (NotFound, Unavailable) as error:
            raise InvalidArgument(str(error)) from error

    async def index(self, *, ready: bool = False) -> list[IndexEntry]:
        """What the repositories hold and what became of it. `ready` keeps only what serves."""
        snapshot = await self._control.look()
        entries = listing.entries(snapshot, self._manager.index(), self._control.made_of_requests())
        return [entry for entry in entries if not ready or entry.state == "READY"]

    async def load(self, name: str, options: LoadOptions | None = None, *, trusted: bool = False) -> None:
        """Have a model loaded, or loaded again; returns when it serves. `trusted` says that this program itself asks.

        Raises what kept it from loading, and Forbidden for files of a client's request where those are not allowed.
        """
        options = options or LoadOptions()
        if options.files and not (trusted or self._settings.allow_model_override):
            raise Forbidden(
                f"load of model '{name}': files in a request are refused, since a model's files can be code that runs with the "
                "server's rights; start the server with --allow-model-override=true to allow them"
            )
        _raise_failures(await self._mode.load(name, options))

    async def reload(self) -> list[Reloaded]:
        """Have everything that is loaded loaded again where it has changed; what became of each model, by name.

        Raises Unavailable where the control mode does not leave this to clients.
        """
        return [_reloaded(outcome) for outcome in await self._mode.reload()]

    async def plan(self) -> list[Step]:
        """What the next poll, or loading again what clients have loaded, would do, without doing it."""
        return await self._control.plan(loaded=self._mode.clients_decide)

    async def unload(self, name: str, *, dependents: bool = False, versions: frozenset[int] = frozenset()) -> None:
        """Have a model, or only these versions of it, unloaded; returns when that is drained and closed.

        `dependents` takes along what was loaded for this model alone. A model that is not loaded is no error.
        """
        _raise_failures(await self._mode.unload(name, dependents=dependents, versions=versions))

    def log_settings(self) -> dict[str, bool | int | str]:
        return self._log.settings()

    def update_log_settings(self, changes: Mapping[str, object]) -> dict[str, bool | int | str]:
        """Raises InvalidArgument or Unsupported, and changes nothing then."""
        self._log.update(changes)
        return self._log.settings()

    def _servable(self, name: str, version: int) -> Servable:
        try:
            return self._serving.get(name, version)
        except Unavailable as error:
            raise NotFound(str(error)) from error


_ERRORS: dict[Code, type[MoorageError]] = {
    Code.INVALID_ARGUMENT: InvalidArgument,
    Code.NOT_FOUND: NotFound,
    Code.UNAVAILABLE: Unavailable,
    Code.UNSUPPORTED: Unsupported,
}


def _reloaded(outcome: Outcome) -> Reloaded:
    if outcome.error is not None:
        return Reloaded(str(outcome.id), "error", outcome.error.message)
    return Reloaded(str(outcome.id), "reloaded" if outcome.changed else "unchanged")


def _raise_failures(outcomes: list[Outcome]) -> None:
    failed = [outcome.error for outcome in outcomes if outcome.error is not None]
    if failed:
        raise _as_error(failed)


def _as_error(failed: list[ErrorRecord]) -> MoorageError:
    """The failures of a load as one error. What a model's own code or files did wrong is a bad argument."""
    message = "; ".join(record.message for record in failed)
    code = failed[0].code
    if code is Code.INTERNAL:
        return InvalidArgument(message)
    return _ERRORS.get(code, Internal)(message)
