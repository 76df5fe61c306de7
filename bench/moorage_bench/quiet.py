"""Waiting for a moment in which the machine has nothing else to do."""

from __future__ import annotations

import time
from pathlib import Path

_LOOK_S = 0.5
_BUSY = 0.15
"""Share of all processors that others may use in a moment that counts as quiet."""


def await_quiet(patience_s: float) -> bool:
    """Wait until the machine is quiet, for so many seconds at most. Returns whether it is; without patience, True."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if busy_share(_LOOK_S) <= _BUSY:
            return True
    return patience_s <= 0


def busy_share(seconds: float) -> float:
    """Share of the time of all processors that is used, by anyone, in the next `seconds`."""
    before, idle_before = _times()
    time.sleep(seconds)
    after, idle_after = _times()
    return 1 - (idle_after - idle_before) / max(after - before, 1)


def _times() -> tuple[int, int]:
    """Clock ticks since the start of the system: all, and those without work."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]
