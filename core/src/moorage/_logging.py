"""Logging: what is written, where to, and the settings that can be changed while the server runs.

The server speaks to the standard library's logging. `Log` shapes what the whole process logs, and belongs to the command line
alone; an application that embeds a server keeps its own logging.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, TextIO, cast

import structlog
from attrs import define

from moorage.errors import InvalidArgument, Unsupported

FORMATS = ("default", "ISO8601", "json")
_SETTING_OF_LEVEL = {
    "info": "log_info",
    "warning": "log_warning",
    "error": "log_error",
    "critical": "log_error",
    "exception": "log_error",
}

Setting = bool | int | str


@define
class LogSettings:
    """The settings of the logging extension. `log_file` empty means standard error."""

    log_file: str = ""
    log_info: bool = True
    log_warning: bool = True
    log_error: bool = True
    log_verbose_level: int = 0
    log_format: str = "default"


class Event:
    """The message of a log record: what happened, and the fields that belong to it.

    Without `Log` it reads "what field=value ...".
    """

    __slots__ = ("fields", "what")

    def __init__(self, what: str, fields: Mapping[str, Any]) -> None:
        self.what = what
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.what, *(f"{name}={value}" for name, value in self.fields.items())])


def get_logger(name: str) -> Any:
    """A logger of the standard library that takes an event with fields: `log.info("model", version=3)`."""
    return structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _to_record],
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def _to_record(_: object, __: str, event: MutableMapping[str, Any]) -> tuple[tuple[Event], dict[str, Any]]:
    exc_info = event.pop("exc_info", None)
    return (Event(event.pop("event"), event),), {"exc_info": exc_info, "stacklevel": 4}


class Log:
    """The log of the command line. One for a process; the last one configured is in force."""

    def __init__(self, settings: LogSettings) -> None:
        self._settings = settings
        self._stream: TextIO = _open(settings.log_file) if settings.log_file else cast("TextIO", _StandardError())
        self._renderers = _renderers(self._stream)
        self._configure()

    def close(self) -> None:
        """Close the log file, if there is one; later messages go to standard error."""
        own = logging.getLogger("moorage")
        own.handlers, own.propagate = [], True
        own.setLevel(logging.NOTSET)
        if self._settings.log_file:
            structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
            self._stream.close()

    def settings(self) -> dict[str, Setting]:
        """The settings by name, as the logging extension shows them."""
        settings = self._settings
        return {
            "log_file": settings.log_file,
            "log_info": settings.log_info,
            "log_warning": settings.log_warning,
            "log_error": settings.log_error,
            "log_verbose_level": settings.log_verbose_level,
            "log_format": settings.log_format,
        }

    def update(self, changes: Mapping[str, object]) -> None:
        """Change settings; unknown names are ignored. Raises InvalidArgument naming the setting, and changes nothing then."""
        checked = {name: _checked(name, value) for name, value in changes.items() if hasattr(self._settings, name)}
        for name, value in checked.items():
            setattr(self._settings, name, value)
        self._set_level()

    def _configure(self) -> None:
        structlog.configure(
            processors=[
                structlog.stdlib.add_log_level,
                self._drop_unwanted,
                structlog.processors.format_exc_info,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                self._render,
            ],
            logger_factory=structlog.PrintLoggerFactory(self._stream),
            cache_logger_on_first_use=False,
        )
        root, own = logging.getLogger(), logging.getLogger("moorage")
        root.handlers = [_ToStructlog()]
        root.setLevel(logging.WARNING)
        own.handlers, own.propagate = root.handlers[:], False  # so that no model takes it away with `basicConfig(force=True)`
        logging.captureWarnings(capture=True)
        self._set_level()

    def _set_level(self) -> None:
        """Have verbose messages cost nothing while nobody wants them."""
        logging.getLogger("moorage").setLevel(logging.DEBUG if self._settings.log_verbose_level > 0 else logging.INFO)

    def _drop_unwanted(self, _: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        level = event["level"]
        wanted = (
            self._settings.log_verbose_level > 0
            if level == "debug"
            else getattr(self._settings, _SETTING_OF_LEVEL.get(level, "log_error"))
        )
        if not wanted:
            raise structlog.DropEvent
        return event

    def _render(self, logger: object, method: str, event: MutableMapping[str, Any]) -> str:
        return str(self._renderers[self._settings.log_format](logger, method, event))


class _StandardError:
    """Standard error as it is when it is written to: what draws on a terminal takes its place meanwhile."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


class _ToStructlog(logging.Handler):
    """Brings what libraries log through the standard library into the same log."""

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(Exception):  # a full disk or a wrong format must not fail what it happens in
            self._write(record)

    def _write(self, record: logging.LogRecord) -> None:
        logger = structlog.get_logger(record.name)
        level = record.levelname.lower()
        method = getattr(logger, level if level in _SETTING_OF_LEVEL or level == "debug" else "info")
        event = record.msg if isinstance(record.msg, Event) else Event(record.getMessage(), {})
        method(event.what, exc_info=record.exc_info or None, **event.fields)


def _renderers(stream: TextIO) -> dict[str, Any]:
    console = structlog.dev.ConsoleRenderer(colors=stream.isatty(), sort_keys=False)
    return {
        "default": console,
        "ISO8601": structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False),
        "json": structlog.processors.JSONRenderer(),
    }


def _open(path: str) -> TextIO:
    try:
        return Path(path).open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError as error:
        raise InvalidArgument(f"--log-file: '{path}' cannot be written: {error.strerror}") from error


def _checked(name: str, value: object) -> Setting:
    if name == "log_file":
        raise Unsupported("the log file can only be set at start, with --log-file")
    if name == "log_format":
        if value not in FORMATS:
            raise InvalidArgument(f"log_format is '{value}', it may be one of {', '.join(FORMATS)}")
        return str(value)
    if name == "log_verbose_level":
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidArgument(f"log_verbose_level is {value!r}, it must be a whole number of 0 or more")
        return value
    if not isinstance(value, bool):
        raise InvalidArgument(f"{name} is {value!r}, it must be true or false")
    return value
