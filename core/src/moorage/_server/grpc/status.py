"""Errors as gRPC statuses."""

from __future__ import annotations

from typing import Final

import grpc

from moorage.errors import Code, MoorageError

_STATUS: Final = {
    Code.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Code.ALREADY_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    Code.FORBIDDEN: grpc.StatusCode.UNAVAILABLE,
    Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    Code.UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    Code.TOO_LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.DEADLINE_EXCEEDED: grpc.StatusCode.DEADLINE_EXCEEDED,
    Code.CANCELLED: grpc.StatusCode.CANCELLED,
    Code.INTERNAL: grpc.StatusCode.INTERNAL,
    Code.UNKNOWN: grpc.StatusCode.UNKNOWN,
}

_LONGEST: Final = 6000
"""Bytes of a status message as it travels; clients refuse trailers of more than 8 KiB."""

_CUT: Final = " … (cut)"


def status_of(error: MoorageError) -> grpc.StatusCode:
    """The status that a client is given for an error."""
    return _STATUS[error.code]


def details_of(message: str) -> str:
    """A message short enough for the trailers of a call."""
    if len(message) * 3 <= _LONGEST:
        return message
    size = 0
    for at, character in enumerate(message):
        size += _travelling_size(character)
        if size > _LONGEST:
            return message[:at] + _CUT
    return message


def _travelling_size(character: str) -> int:
    """Bytes that a character takes in a trailer: what is not printable ASCII is percent-encoded."""
    if " " <= character <= "~" and character != "%":
        return 1
    return 3 * len(character.encode(errors="surrogatepass"))
