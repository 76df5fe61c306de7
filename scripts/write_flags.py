"""Writes docs/reference/flags.md from the options of a server. `--check` only says whether the page is up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import attrs

from moorage._app.flags import Flag, name_of, variable_of
from moorage._app.options import ServerOptions

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "flags.md"
HEAD = """# Flags of `moorage serve`

The names are those of Triton's `tritonserver`, so that a command line can be moved over as it is. Each flag can also be given
as an
environment variable; a flag on the command line wins. Flags that may be given several times take values separated by spaces
from their variable. Booleans are written `true` or `false`.

This page is written by `scripts/write_flags.py`.
"""


def page() -> str:
    """The whole page."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(ServerOptions)
    groups = groupby(fields, key=_group)
    return HEAD + "".join(f"\n## {title}\n\n" + "\n".join(_table(list(members))) + "\n" for title, members in groups)


def _group(field: attrs.Attribute[Any]) -> str:
    return Flag.of(field).group


def _table(members: list[attrs.Attribute[Any]]) -> Iterator[str]:
    yield "| flag | variable | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for field in members:
        flag = Flag.of(field)
        names = ", ".join(f"`{name}`" for name in (name_of(field), *flag.aliases))
        choices = f" One of {', '.join(flag.choices)}." if flag.choices else ""
        yield f"| {names} | `{variable_of(field)}` | {_default(field)} | {flag.help.replace('|', '/')}{choices} |"


def _default(field: attrs.Attribute[Any]) -> str:
    value = field.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value in ("", ()) else f"`{value}`"


def main() -> int:
    """Write the page, or compare it; the exit code."""
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    print(f"{PAGE} is not up to date: run scripts/write_flags.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
