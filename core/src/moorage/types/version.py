"""Model versions: positive whole numbers, and what stands for the newest."""

from __future__ import annotations

from typing import Final

LATEST: Final = -1
"""No version asked for: the greatest that serves."""

_GREATEST: Final = 2**63 - 1


def parse_version(text: str) -> int | None:
    """The version that a folder name or a part of a URL means, or None when it means none.

    A version is a run of decimal digits; "01" means 1 here (folders are stricter, see the repository's layout).
    """
    if not text.isascii() or not text.isdigit():
        return None
    number = int(text) if len(text) <= 32 else _GREATEST + 1
    return number if number <= _GREATEST else None
