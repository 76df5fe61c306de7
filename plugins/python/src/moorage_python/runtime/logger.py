"""The log of the server, as models write to it."""

from __future__ import annotations

import enum
import logging

from moorage_python.runtime.imports import calling_context

MODEL_LOG = "moorage.model"
"""The name of the logger that models write to."""


class LogLevel(enum.IntEnum):
    """Levels of `Logger.log`."""

    INFO = logging.INFO
    WARNING = logging.WARNING
    ERROR = logging.ERROR
    VERBOSE = logging.DEBUG


class Logger:
    """Writes to the server's log. Lines bear the name of the model."""

    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    @staticmethod
    def log(message: str, level: int = logging.INFO) -> None:
        """Write a line at this level."""
        _write(level, message)

    @staticmethod
    def log_info(message: str) -> None:
        """Write a line of information."""
        _write(LogLevel.INFO, message)

    @staticmethod
    def log_warn(message: str) -> None:
        """Write a warning."""
        _write(LogLevel.WARNING, message)

    @staticmethod
    def log_error(message: str) -> None:
        """Write an error."""
        _write(LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message: str) -> None:
        """Write a line that shows only in a verbose log."""
        _write(LogLevel.VERBOSE, message)


def _write(level: int, message: str) -> None:
    context = calling_context()
    logging.getLogger(MODEL_LOG).log(level, "%s%s", f"[{context.label}] " if context else "", message)
