"""Every error that moorage raises on purpose.

    MoorageError                      has a protocol-neutral `code`; protocols translate it, nobody else does
    ├── InvalidArgument               the caller gave something wrong
    │   ├── ConfigError               a model's configuration; carries all `faults` found, not the first
    │   └── RequestError              an inference or control request
    ├── NotFound                      no such model, version, file
    ├── AlreadyExists
    ├── Forbidden                     the operation is switched off or needs a credential
    ├── Unavailable                   exists, but not now: loading, unloading, wrong control mode, full queue
    ├── Unsupported                   nothing here does that
    ├── TooLarge                      a body or message over its limit
    ├── DeadlineExceeded
    ├── Cancelled
    └── Internal                      the server, a plugin or a model is at fault
        ├── ModelError                a model raised while it loaded or ran
        ├── PluginError               a plugin broke its contract
        └── StorageError              a repository could not be read (never taken for "empty")

Foreign exceptions are translated where they enter, with `raise ... from`, so that the cause is kept.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from attrs import frozen


class Code(enum.Enum):
    """What went wrong, in words that every protocol has a status for."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    FORBIDDEN = "FORBIDDEN"
    UNAVAILABLE = "UNAVAILABLE"
    UNSUPPORTED = "UNSUPPORTED"
    TOO_LARGE = "TOO_LARGE"
    DEADLINE_EXCEEDED = "DEADLINE_EXCEEDED"
    CANCELLED = "CANCELLED"
    INTERNAL = "INTERNAL"
    UNKNOWN = "UNKNOWN"


class MoorageError(Exception):
    """The root. `str(error)` is the message that a user reads."""

    code: ClassVar[Code] = Code.UNKNOWN

    @property
    def message(self) -> str:
        return str(self)


class InvalidArgument(MoorageError):
    code = Code.INVALID_ARGUMENT


class RequestError(InvalidArgument):
    """An inference or control request that cannot be carried out as written."""


class NotFound(MoorageError):
    code = Code.NOT_FOUND


class AlreadyExists(MoorageError):
    code = Code.ALREADY_EXISTS


class Forbidden(MoorageError):
    code = Code.FORBIDDEN


class Unavailable(MoorageError):
    code = Code.UNAVAILABLE


class Unsupported(MoorageError):
    code = Code.UNSUPPORTED


class TooLarge(MoorageError):
    code = Code.TOO_LARGE


class DeadlineExceeded(MoorageError):
    code = Code.DEADLINE_EXCEEDED


class Cancelled(MoorageError):
    code = Code.CANCELLED


class Internal(MoorageError):
    code = Code.INTERNAL


class ModelError(Internal):
    """A model raised while it was loaded or while it ran."""


class PluginError(Internal):
    """A plugin could not be imported or broke its contract."""


class StorageError(Internal):
    """A repository could not be read. Nothing may be concluded about what it holds."""


def described(error: BaseException) -> str:
    """The type of an exception and what it says, as `ValueError: no such word`."""
    text = told(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def told(error: BaseException) -> str:
    """What an exception says of itself, or why that cannot be had: the exceptions of a model's code may raise there, too."""
    try:
        return str(error).encode(errors="backslashreplace").decode()
    except BaseException as other:  # noqa: BLE001
        return f"its text cannot be shown ({type(other).__name__})"


_SHOWN = 50
"""Faults in the message of a ConfigError; a file that is no configuration at all has as many as it has words."""
_LONG = 3000
"""Characters of a part of a fault in that message."""


@frozen
class Fault:
    """One thing wrong with a configuration or a repository, with what to change."""

    message: str
    file: str = ""
    """Path or URL of the file, empty when the fault has none."""
    line: int = 0
    """1-based; 0 when unknown."""
    column: int = 0
    field: str = ""
    """Dotted path of the field, e.g. `input[0].data_type`."""
    advice: str = ""
    """What to write instead."""

    def __str__(self) -> str:
        place = self.file
        if self.line:
            place = f"{place}:{self.line}" + (f":{self.column}" if self.column else "")
        parts = [_shortened(part) for part in (place, self.field, self.message) if part]
        text = ": ".join(parts)
        return f"{text} ({self.advice})" if self.advice else text


def _shortened(text: str) -> str:
    """A long text without its middle: what a traceback says comes at its end."""
    return text if len(text) <= _LONG else f"{text[: _LONG // 2]} … {text[-_LONG // 2 :]}"


class ConfigError(InvalidArgument):
    """A model's configuration is wrong. All faults that were found, in the order of the file."""

    def __init__(self, faults: Sequence[Fault], model: str = "") -> None:
        self.faults = tuple(faults)
        self.model = model
        head = f"model '{model}': " if model else ""
        more = f"; and {len(self.faults) - _SHOWN} more" if len(self.faults) > _SHOWN else ""
        super().__init__(head + "; ".join(str(fault) for fault in self.faults[:_SHOWN]) + more)


@frozen
class ErrorRecord:
    """An error as data: what an index or a report keeps of it."""

    code: Code
    message: str
    faults: tuple[Fault, ...] = ()
    passing: bool = False
    """Whether the same may well work later, with nothing changed: a store could not be reached."""

    @classmethod
    def of(cls, error: BaseException) -> ErrorRecord:
        faults = error.faults if isinstance(error, ConfigError) else ()
        code = error.code if isinstance(error, MoorageError) else Code.INTERNAL
        return cls(code, told(error) or type(error).__name__, faults, isinstance(error, StorageError))
