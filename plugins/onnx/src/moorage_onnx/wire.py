"""Just enough of the protobuf wire format to look into an ONNX file without reading its weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class WireField(NamedTuple):
    """A field: its number, and where its content begins and ends in the file (nothing between them for a number)."""

    number: int
    begin: int
    end: int


def fields(file: BinaryIO, begin: int, end: int) -> Iterator[WireField]:
    """The fields of the message at `begin:end`. Stops quietly at what is no valid message."""
    while begin < end:
        file.seek(begin)
        key = _varint(file)
        if key is None:
            return
        kind = key & 7
        size = _size(file, kind)
        start = file.tell()
        if size is None or start + size > end:
            return
        yield WireField(key >> 3, start, start + size)
        begin = start + size


def texts(file: BinaryIO, part: WireField) -> dict[int, str]:
    """The text fields of a small message, by number."""
    found = {}
    for inner in fields(file, part.begin, part.end):
        file.seek(inner.begin)
        found[inner.number] = file.read(inner.end - inner.begin).decode(errors="replace")
    return found


def _size(file: BinaryIO, kind: int) -> int | None:
    if kind == _BYTES:
        return _varint(file)
    if kind == _VARINT:
        return None if _varint(file) is None else 0
    return {_FIXED64: 8, _FIXED32: 4}.get(kind)


def _varint(file: BinaryIO) -> int | None:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    return None
