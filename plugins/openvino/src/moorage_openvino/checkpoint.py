"""Whether the index of a SavedModel's variables is whole. OpenVINO believes what it says, and a damaged one ends the process.

The index is a table of blocks in the format of LevelDB: each block is followed by a byte for its kind and a checksum of both.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from moorage.errors import ModelError

INDEX = Path("variables") / "variables.index"
_MAGIC = 0xDB4775248B80FB57
_FOOTER = 48
_TRAILER = 5
_POLYNOMIAL = 0x82F63B78


class _DamagedError(Exception):
    """Says what is wrong."""


def check_variables(model: str, folder: Path) -> None:
    """Raise ModelError if a SavedModel's index of variables is damaged. One without variables is fine."""
    path = folder / INDEX
    if not path.is_file():
        return
    try:
        _check(path.read_bytes())
    except _DamagedError as error:
        raise ModelError(f"model '{model}': {path} is damaged ({error}); copy the SavedModel again") from error


def _check(content: bytes) -> None:
    if len(content) < _FOOTER or struct.unpack("<Q", content[-8:])[0] != _MAGIC:
        raise _DamagedError("its end is missing")
    footer = content[-_FOOTER:]
    names, at = _handle(footer, 0)
    table, _ = _handle(footer, at)
    _block(content, names)
    for handle in _handles(_block(content, table)):
        _block(content, handle)


def _block(content: bytes, handle: tuple[int, int]) -> bytes:
    """The block at an offset, of a size, without its trailer."""
    offset, size = handle
    end = offset + size
    if end + _TRAILER > len(content):
        raise _DamagedError(f"it ends before byte {end}")
    (stored,) = struct.unpack_from("<I", content, end + 1)
    if stored != _masked(_crc32c(content[offset : end + 1])):
        raise _DamagedError(f"the checksum of the {size} bytes from byte {offset} is wrong")
    return content[offset:end]


def _handles(block: bytes) -> Iterator[tuple[int, int]]:
    """The blocks that a block of entries names: their offsets and sizes."""
    if len(block) < 4:
        raise _DamagedError("its table is too short")
    (restarts,) = struct.unpack("<I", block[-4:])
    at, end = 0, len(block) - 4 - 4 * restarts
    while at < end:
        _, at = _varint(block, at)
        key, at = _varint(block, at)
        value, at = _varint(block, at)
        yield _handle(block, at + key)[0]
        at += key + value


def _handle(data: bytes, at: int) -> tuple[tuple[int, int], int]:
    """An offset and a size, and where they end."""
    offset, at = _varint(data, at)
    size, at = _varint(data, at)
    return (offset, size), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _DamagedError("a number in it is cut off")


def _table() -> tuple[int, ...]:
    values = []
    for number in range(256):
        value = number
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        values.append(value)
    return tuple(values)


_CRC = _table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _masked(crc: int) -> int:
    """The form in which checksums are stored."""
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
