"""What has to leave a cache for something else to fit: a pure decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Kept(NamedTuple):
    """A file in a cache: its bytes, and when it was last used (nanoseconds)."""

    size: int
    used: int


def victims(kept: Mapping[str, Kept], pinned: Mapping[str, int], limit: int) -> list[str] | None:
    """The files to remove, least recently used first, so that the others and all that is pinned have at most `limit` bytes.

    `pinned` are the files (with their bytes) that servers have loaded or are about to bring; they stay. None if they alone
    are too many: then nothing is to be removed.
    """
    total = sum(pinned.values()) + sum(one.size for key, one in kept.items() if key not in pinned)
    going = []
    for key in sorted(kept.keys() - pinned.keys(), key=lambda key: (kept[key].used, key)):
        if total <= limit:
            break
        going.append(key)
        total -= kept[key].size
    return going if total <= limit else None
