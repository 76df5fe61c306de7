"""The table that a person reads and the JSON that a program does."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import define, field

from moorage_bench.measure import Point

_HEADINGS = ("point", "side", "median", "min - max", "unit", "ratio", "in rounds", "aim", "")


@define
class Report:
    """What a run has found so far."""

    points: dict[str, tuple[Point, ...]] = field(factory=dict)
    """By set."""
    skipped: dict[str, str] = field(factory=dict)
    """Sets that could not be measured, and why."""
    settings: Mapping[str, Any] = field(factory=dict)

    def missed(self) -> list[Point]:
        """The points that have an aim and do not reach it."""
        return [p for points in self.points.values() for p in points if p.met is False]

    def table(self) -> str:
        """All points in aligned columns, then what was left out."""
        rows: list[tuple[str, ...]] = [_HEADINGS]
        for name, points in self.points.items():
            for point in points:
                rows += _rows(name, point)
        lines = _aligned(rows)
        lines += [f"{name}: not measured: {reason}" for name, reason in self.skipped.items()]
        return "\n".join(lines)

    def write(self, folder: Path) -> Path:
        """Write everything, readings included, to a new file in the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC)
        path = folder / f"{now:%Y%m%dT%H%M%SZ}.json"
        content = {
            "time": now.isoformat(timespec="seconds"),
            "machine": _machine(),
            "settings": dict(self.settings),
            "sets": {name: [_point(p) for p in points] for name, points in self.points.items()},
            "skipped": self.skipped,
        }
        path.write_text(json.dumps(content, indent=2) + "\n")
        return path


def _rows(name: str, point: Point) -> list[tuple[str, ...]]:
    low, high = point.ratio_spread
    verdict = {None: "", True: "met", False: "MISSED"}[point.met]
    ratio = (f"{point.ratio:.2f}", f"{low:.2f} - {high:.2f}", str(point.aim or ""), verdict)
    subject = (f"{name}: {point.title}", *_side(point, point.subject), *ratio)
    return [subject, ("", *_side(point, point.base), "", "", "", "")]


def _side(point: Point, side: str) -> tuple[str, str, str, str]:
    values = point.readings[side]
    return side, f"{statistics.median(values):.5g}", f"{min(values):.5g} - {max(values):.5g}", point.unit


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _point(point: Point) -> dict[str, Any]:
    return {
        "title": point.title,
        "unit": point.unit,
        "subject": point.subject,
        "base": point.base,
        "readings": {side: list(values) for side, values in point.readings.items()},
        "ratio": point.ratio,
        "ratio_spread": list(point.ratio_spread),
        "aim": str(point.aim) if point.aim else None,
        "met": point.met,
    }


def _machine() -> dict[str, Any]:
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "load_average": os.getloadavg(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
