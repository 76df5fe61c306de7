"""Errors as a model sees and makes them."""

from __future__ import annotations

import enum


class ErrorCode(enum.IntEnum):
    """What went wrong; the numbers are Triton's."""

    UNKNOWN = 0
    INTERNAL = 1
    NOT_FOUND = 2
    INVALID_ARG = 3
    UNAVAILABLE = 4
    UNSUPPORTED = 5
    ALREADY_EXISTS = 6
    CANCELLED = 7


class TritonError(Exception):
    """An error for one request: `InferenceResponse(error=TritonError("no such word", TritonError.NOT_FOUND))`."""

    UNKNOWN = ErrorCode.UNKNOWN
    INTERNAL = ErrorCode.INTERNAL
    NOT_FOUND = ErrorCode.NOT_FOUND
    INVALID_ARG = ErrorCode.INVALID_ARG
    UNAVAILABLE = ErrorCode.UNAVAILABLE
    UNSUPPORTED = ErrorCode.UNSUPPORTED
    ALREADY_EXISTS = ErrorCode.ALREADY_EXISTS
    CANCELLED = ErrorCode.CANCELLED

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INTERNAL) -> None:
        super().__init__(message)
        self._code = ErrorCode(code)

    def code(self) -> ErrorCode:
        """The error's code."""
        return self._code

    def message(self) -> str:
        """The text that the client reads."""
        return str(self)


class TritonModelException(Exception):
    """What a model raises, and what this module raises when a model uses it wrongly."""


class NotSupportedYet(TritonModelException):
    """The model asked for something that Triton has and this server has not."""
