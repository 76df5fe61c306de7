"""What both kinds of server share: the questions that need no waiting, and the forms of their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

import orjson

from moorage._admin import ModelMetadata, ModelStatistics, ServerMetadata
from moorage._app.arguments import options_with
from moorage._app.engine import Engine
from moorage._app.options import ServerOptions
from moorage.config import to_json
from moorage.config.schema import ModelConfig
from moorage.control import LoadOptions
from moorage.errors import Unsupported
from moorage.server.requests import version_number

if TYPE_CHECKING:
    from moorage._app.protocols import Protocols

Config = str | Mapping[str, Any] | ModelConfig
"""A model's configuration: JSON text, what it says as a dict, or the configuration itself."""


class Questions(ABC):
    """What can be asked of a server from any thread."""

    options: ServerOptions
    """What the server was told."""

    @abstractmethod
    def live(self) -> bool:
        """Whether the server has been started and not been closed."""

    @overload
    def metadata(self) -> ServerMetadata: ...

    @overload
    def metadata(self, name: str, version: int | str | None = None) -> ModelMetadata: ...

    def metadata(self, name: str | None = None, version: int | str | None = None) -> ServerMetadata | ModelMetadata:
        """What the server is, or what a model takes and gives. Raises NotFound for a model that does not serve."""
        admin = self._running().admin
        return admin.server_metadata() if name is None else admin.model_metadata(name, version_number(version))

    def config(self, name: str, version: int | str | None = None) -> ModelConfig:
        """The configuration that a model serves with (`moorage.config.to_json` makes JSON of it). Raises NotFound."""
        return self._running().admin.model_config(name, version_number(version))

    def statistics(self, name: str | None = None, version: int | str | None = None) -> list[ModelStatistics]:
        """The counts of a version, of all versions of a model, or of all models. Raises InvalidArgument for unknown ones."""
        return self._running().admin.statistics(name or "", version_number(version))

    def metrics(self) -> str:
        """The metrics in Prometheus' text format."""
        return self._protocols().metrics_page(self._running())

    def _protocols(self, **changes: Any) -> Protocols:
        from moorage._app.protocols import Protocols  # noqa: PLC0415 (loads libraries that only protocols need)

        return Protocols(options_with(self.options, {name: value for name, value in changes.items() if value is not None}))

    @abstractmethod
    def _running(self) -> Engine:
        """The engine. Raises Unavailable before the start and after the end."""


class ApplicationLog:
    """The log of a server that is embedded: it is the application's, and shown and changed there."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options

    def settings(self) -> dict[str, bool | int | str]:
        """What the options say."""
        options = self._options
        return {
            "log_file": options.log_file,
            "log_info": options.log_info,
            "log_warning": options.log_warning,
            "log_error": options.log_error,
            "log_verbose_level": options.log_verbose,
            "log_format": options.log_format,
        }

    def update(self, changes: Mapping[str, object]) -> None:
        """Raises Unsupported if anything is to change."""
        if any(changes.values()) or changes.keys() & self.settings().keys():
            raise Unsupported(
                "this server is embedded in an application, whose logging is configured there ('moorage' loggers)"
            )


def load_options(
    config: Config | None, files: Mapping[str, bytes] | None, *, force: bool, versions: Iterable[int]
) -> LoadOptions:
    """How a load differs from what the repository says."""
    text = config if config is None or isinstance(config, str) else orjson.dumps(_fields(config)).decode()
    contents = {} if files is None else {path: bytes(content) for path, content in files.items()}
    return LoadOptions(text, contents, force, frozenset(versions))


def _fields(config: Mapping[str, Any] | ModelConfig) -> Mapping[str, Any]:
    return to_json(config) if isinstance(config, ModelConfig) else config
