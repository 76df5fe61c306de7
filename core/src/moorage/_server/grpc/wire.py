"""The little of protobuf's wire format that lets large tensors pass without being copied by a parser."""

from __future__ import annotations

from typing import Final

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10


class MalformedError(ValueError):
    """The bytes are not a protobuf message."""


def varint(number: int) -> bytes:
    """A number of at least 0 as protobuf writes it."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at` and the place behind it. Raises MalformedError."""
    number = shift = 0
    for place in range(at, min(at + _LONGEST_VARINT, len(data))):
        byte = data[place]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, place + 1
        shift += 7
    raise MalformedError(f"no number at byte {at}")


def split(data: bytes, number: int) -> tuple[bytes, list[memoryview]]:
    """The message without field `number`, and that field's values as views of `data`. Raises MalformedError.

    The field must be a repeated one of bytes.
    """
    view = memoryview(data)
    rest: list[memoryview] = []
    values: list[memoryview] = []
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = read_varint(data, at)
        if tag == number << 3 | _LENGTH:
            size, at = read_varint(data, at)
            values.append(view[at : at + size])
            at += size
        else:
            at = _behind(data, at, tag & 7)
            rest.append(view[start:at])
        if at > end:
            raise MalformedError(f"the field at byte {start} is longer than the message")
    return b"".join(rest), values


def _behind(data: bytes, at: int, kind: int) -> int:
    """The place behind a field's value that begins at `at`."""
    if kind == _VARINT:
        return read_varint(data, at)[1]
    if kind == _FIXED64:
        return at + 8
    if kind == _FIXED32:
        return at + 4
    if kind == _LENGTH:
        size, at = read_varint(data, at)
        return at + size
    raise MalformedError(f"wire type {kind} at byte {at}")
