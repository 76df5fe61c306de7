"""The table of models that is printed when a server has started."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from moorage._admin import IndexEntry

_STYLE = {"READY": "green", "UNAVAILABLE": "red"}


def print_models(entries: Sequence[IndexEntry]) -> None:
    """Print a line for each version in the repository index, to standard error."""
    console = Console(stderr=True)
    if not entries:
        console.print("No models.")
        return
    table = Table("Model", "Version", "State", "Reason")
    for entry in entries:
        state = entry.state or "not loaded"
        table.add_row(entry.name, entry.version or "-", f"[{_STYLE.get(entry.state, 'dim')}]{state}", entry.reason)
    console.print(table)
