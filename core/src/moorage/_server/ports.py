"""What the protocols ask of the rooms below: inference, and everything about models that is not an inference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from moorage._admin import IndexEntry, ModelMetadata, ModelStatistics, Reloaded, ServerMetadata
from moorage._control.forecast import Step
from moorage.config.schema import ModelConfig
from moorage.control import LoadOptions
from moorage.errors import MoorageError
from moorage.types import InferRequest, InferResponse, Sink


class SubmitPort(Protocol):
    """The inference service for whoever takes answers by a sink."""

    def submit(self, request: InferRequest, sink: Sink, *, unary: bool = ...) -> None:
        """Start a request; its answers go to the sink. Raises at once if the request is refused.

        `unary` says that the call can carry one response only.
        """


class InferencePort(SubmitPort, Protocol):
    """The inference service for whoever runs on its event loop."""

    def start(self, request: InferRequest, answered: Callable[[InferResponse | MoorageError], None]) -> None:
        """Run a request that has exactly one response; `answered` is called later, on the event loop on which this is called.

        Raises at once if the request is refused.
        """

    async def infer(self, request: InferRequest) -> InferResponse:
        """As `start`, for coroutines."""


class AdminPort(Protocol):
    """Everything about models that is not an inference. Methods raise MoorageError."""

    def live(self) -> bool: ...

    def ready(self) -> bool: ...

    def model_ready(self, name: str, version: int) -> bool: ...

    def server_metadata(self) -> ServerMetadata: ...

    def model_metadata(self, name: str, version: int) -> ModelMetadata: ...

    def model_config(self, name: str, version: int) -> ModelConfig: ...

    def statistics(self, name: str = "", version: int = ...) -> Sequence[ModelStatistics]: ...

    async def index(self, *, ready: bool = False) -> Sequence[IndexEntry]: ...

    async def load(self, name: str, options: LoadOptions) -> None: ...

    async def unload(self, name: str, *, dependents: bool = False, versions: frozenset[int] = ...) -> None: ...

    def log_settings(self) -> Mapping[str, bool | int | str]: ...

    def update_log_settings(self, changes: Mapping[str, bool | int | str]) -> Mapping[str, bool | int | str]: ...


class ManagementPort(AdminPort, Protocol):
    """What HTTP offers beside it: everything about all models at once."""

    async def plan(self) -> Sequence[Step]: ...

    async def reload(self) -> Sequence[Reloaded]: ...
