"""What a model control mode must offer: it says which models are wanted, and knows nothing of how they are loaded."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

from attrs import field, frozen

from moorage.errors import ErrorRecord, StorageError, Unavailable


class ModelId(NamedTuple):
    """A model. `namespace` is the URL of its repository when namespacing is on, else empty."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}::{self.name}" if self.namespace else self.name


@frozen
class ModelParts:
    """The fingerprints of a model's parts.

    `versions` maps each version to that of its folder, `shared` is that of all else: configurations, labels and whatever lies
    beside the version folders. `summed` are the versions that hold a file `SHA256SUMS`, see `ControlContext.doubt`.
    """

    shared: str = ""
    versions: Mapping[int, str] = field(factory=dict)
    summed: frozenset[int] = frozenset()


@frozen
class FoundModel:
    """A model as the last look at the repositories found it.

    `fingerprint` changes whenever its configuration, its files or the set of its versions does. `problem` is set when it
    cannot be loaded as it stands (its configuration does not parse, its name is in two repositories, ...).
    """

    id: ModelId
    repository: str
    versions: tuple[int, ...]
    fingerprint: str
    problem: ErrorRecord | None = None
    _parts: Callable[[], ModelParts] | None = field(default=None, eq=False, repr=False)

    def parts(self) -> ModelParts:
        """What of it has changed, where `fingerprint` has. Computed at each call: ask for models that changed only."""
        return self._parts() if self._parts is not None else ModelParts(self.fingerprint)


@frozen
class Snapshot:
    """The repositories at one moment. `unreadable` maps each repository that could not be read to the reason.

    Of the models of an unreadable repository nothing is known: never conclude that they are gone.
    """

    models: Mapping[ModelId, FoundModel]
    unreadable: Mapping[str, ErrorRecord] = field(factory=dict)

    def named(self, name: str) -> tuple[FoundModel, ...]:
        """The models of this name, more than one only with namespacing."""
        return tuple(model for model in self.models.values() if model.id.name == name)

    def require_readable(self) -> None:
        """Raises StorageError if a repository could not be read: for a start, which should not go on without one."""
        if self.unreadable:
            raise StorageError("; ".join(error.message for error in self.unreadable.values()))


@frozen
class LoadOptions:
    """How a load differs from what the repository says.

    `config` replaces the model's configuration (JSON text), `files` maps "VERSION/PATH" to contents that replace the model's
    folder, `force` loads even if nothing has changed. `versions` are loaded beside those that serve, which are left alone;
    empty means those that the version policy picks, in place of all that serve. `unfinished` versions are still being written:
    they are taken as if they were not there.
    """

    config: str | None = None
    files: Mapping[str, bytes] = field(factory=dict)
    force: bool = False
    versions: frozenset[int] = frozenset()
    unfinished: frozenset[int] = frozenset()


@frozen
class Outcome:
    """How a load or unload of one model ended. `error` None means that it serves (or is unloaded) as wanted."""

    id: ModelId
    error: ErrorRecord | None = None
    changed: bool = True
    """False when there was nothing to do."""


class ControlContext(Protocol):
    """What a control mode can ask of the server. All methods are called on the server's event loop."""

    @property
    def initial_models(self) -> Sequence[str]:
        """The names given by `--load-model`."""

    @property
    def poll_seconds(self) -> float: ...

    @property
    def settle_seconds(self) -> float: ...

    @property
    def max_loaded_models(self) -> int:
        """How many models may be loaded at a time, 0 for any number."""

    async def scan(self) -> Snapshot:
        """Look at the repositories."""

    async def doubt(self, model: ModelId, version: int) -> str:
        """Why a version is not what its file `SHA256SUMS` says; empty if every file that is listed there is there and matches.

        Reads all these files, which takes its time.
        """

    def wanted(self) -> frozenset[ModelId]:
        """The models that are wanted now, loaded, loading or failed."""

    def idle(self) -> Mapping[ModelId, int]:
        """The models that serve and run no request now, with the time of their last one in milliseconds since the epoch.

        0 stands for a model that has not been asked yet.
        """

    async def want(self, models: Sequence[ModelId], options: LoadOptions | None = None) -> list[Outcome]:
        """Have these models loaded as the last scan found them; returns when each serves or has failed.

        What they depend on is loaded first, as far as it does not serve yet; `options` are not for that. A model that is loaded
        and unchanged is left alone, a changed one is replaced without losing a request, a failed replacement leaves the old
        one serving.
        """

    async def release(
        self, models: Sequence[ModelId], *, dependents: bool = False, versions: frozenset[int] = frozenset()
    ) -> list[Outcome]:
        """Have these models unloaded; returns when they are drained and closed.

        `dependents` unloads what was loaded for them alone, too. With `versions`, only these versions are unloaded, and the
        model as a whole if none is left.
        """


class ControlMode(ABC):
    """Decides which models are served. One object for the life of the server."""

    name: ClassVar[str]
    """What `--model-control-mode` says."""

    clients_decide: ClassVar[bool] = False
    """Whether clients say what is loaded; what nobody has asked for is then no business of `moorage plan`."""

    def __init__(self, context: ControlContext) -> None:
        self.context = context

    @abstractmethod
    async def start(self) -> list[Outcome]:
        """Bring up the initial models; returns when each has been tried. An exception stops the start of the server."""

    async def run(self) -> None:
        """Watch for changes until cancelled. The default watches nothing."""
        return

    @abstractmethod
    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        """A client asks for a model. Raises Unavailable, naming the mode and the flag, if clients have no say in this mode."""

    async def reload(self) -> list[Outcome]:
        """A client asks for everything that is loaded to be loaded again, as it lies in the repositories now.

        Returns what became of each model. Raises as `load` does; the default is for modes in which clients have no say.
        """
        raise Unavailable(
            f"cannot reload models: in model control mode {self.name.upper()} clients have no say in what is loaded; start the "
            "server with --model-control-mode=explicit"
        )

    @abstractmethod
    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        """A client asks for a model, or for some of its versions, to be unloaded. Raises as `load` does."""


@runtime_checkable
class Summoning(Protocol):
    """What a control mode offers that loads a model when a request for it comes in."""

    async def summon(self, name: str) -> None:
        """A request asks for a model that does not serve. When this returns the model is looked for once more.

        Many requests may ask at the same time. Raises what keeps the model from being loaded.
        """
