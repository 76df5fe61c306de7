"""Prometheus text reduced to what a case compares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

SAMPLE: Final = re.compile(r"([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)")
LABEL: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)"')
SUFFIX: Final = re.compile(r"_(bucket|sum|count|total)$")


def _among(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def families(text: str, wanted: Sequence[str], *, label_values: bool, values: Sequence[str]) -> dict[str, Any]:
    """Families by name: their kind, and their label keys (or whole label sets), with sample values where asked."""
    typed = re.findall(r"^# TYPE (\S+) (\S+)", text, re.MULTILINE)
    found: dict[str, Any] = {name: {"type": kind, "labels": []} for name, kind in typed if _among(name, wanted)}
    for line in text.splitlines():
        sample = SAMPLE.match(line)
        family = None if sample is None else _family(sample.group(1), found)
        if sample is None or family is None:
            continue
        shown = _labels(sample.group(2) or "", label_values)
        if _among(sample.group(1), values):
            shown += f" -> {float(sample.group(3)):g}"
        if shown not in found[family]["labels"]:
            found[family]["labels"].append(shown)
    for one in found.values():
        one["labels"].sort()
    return found


def _family(sample: str, found: dict[str, Any]) -> str | None:
    return next((name for name in (sample, SUFFIX.sub("", sample)) if name in found), None)


def _labels(text: str, label_values: bool) -> str:
    pairs = sorted(pair for pair in LABEL.findall(text) if not pair[0].endswith("uuid"))
    return ",".join(f"{key}={value}" if label_values else key for key, value in pairs)
