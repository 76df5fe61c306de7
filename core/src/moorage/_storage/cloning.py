"""Copies of files that share no memory with them: the file system's own clones where it makes any."""

from __future__ import annotations

import errno
import os
import shutil
import zlib
from pathlib import Path
from typing import Final

_BLOCK: Final = 4 << 20
_STEP: Final = 1 << 30
_NOT_HERE: Final = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF}
"""What the kernel says where it cannot copy between these two files."""


def clone(source: Path, target: Path) -> None:
    """Copy a file. Where the file system can, both share their blocks until one of them is written to. Raises OSError."""
    with source.open("rb") as old, target.open("wb") as new:
        if not _copied_by_kernel(old.fileno(), new.fileno()):
            old.seek(0)
            new.seek(0)
            shutil.copyfileobj(old, new, _BLOCK)


def _copied_by_kernel(source: int, target: int) -> bool:
    copy = getattr(os, "copy_file_range", None)  # Linux alone has it
    if copy is None:
        return False
    left = os.fstat(source).st_size
    done = 0
    while left > 0:
        try:
            count = copy(source, target, min(left, _STEP))
        except OSError as error:
            if done == 0 and error.errno in _NOT_HERE:
                return False
            raise
        if count == 0:
            break
        done, left = done + count, left - count
    return left == 0


def checksum(file: Path) -> str:
    """The CRC-32 of a file: for damage that happens, not for forgeries. Raises OSError."""
    crc = 0
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            crc = zlib.crc32(block, crc)
    return f"crc32:{crc:08x}"
