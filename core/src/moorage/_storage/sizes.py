"""Numbers of bytes as people write them."""

from __future__ import annotations

import re
from typing import Final

from moorage.errors import InvalidArgument

_UNITS: Final = {
    **{name: 1000**power for power, name in enumerate(("", "kb", "mb", "gb", "tb"))},
    **{name: 1024**power for power, name in enumerate(("b", "kib", "mib", "gib", "tib"))},
}
_SIZE: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def bytes_of(text: str) -> int:
    """The bytes that "500000000", "500MB" (thousands) or "1.5GiB" (1024s) mean. Raises InvalidArgument for what means none."""
    match = _SIZE.fullmatch(text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise InvalidArgument(f"'{text}' is no size; write bytes, or a number with a unit, such as 500MB or 10GiB")
    return int(float(match[1]) * unit) if "." in match[1] else int(match[1]) * unit


def shown(size: float) -> str:
    """About so many bytes, as "4.2 GB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
