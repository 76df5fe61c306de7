"""Tables for people."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from moorage._admin import IndexEntry

_STYLE = {"READY": "green", "UNAVAILABLE": "red"}
_WIDTH_OF_FILES = 160


def print_table(titles: Sequence[str], rows: Iterable[Sequence[str | Text]], *, stderr: bool = False) -> None:
    """Print rows as they are: what stands in square brackets is no markup. A log or pipe takes longer lines than a terminal."""
    console = Console(stderr=stderr)
    if not console.is_terminal:
        console.width = max(console.width, _WIDTH_OF_FILES)
    table = Table(*titles)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console.print(table)


def print_models(entries: Sequence[IndexEntry]) -> None:
    """Print a line for each version in the repository index, to standard error."""
    rows = [
        (entry.name, entry.version or "-", Text(entry.state or "not loaded", _STYLE.get(entry.state, "dim")), entry.reason)
        for entry in entries
    ]
    with contextlib.suppress(OSError, SystemExit):  # rich ends the process when nobody reads any more; the server goes on
        print_table(("Model", "Version", "State", "Reason"), rows or [("no models", "", "", "")], stderr=True)
