"""Which texts can be the name of a model: those that are one folder's name and nothing else."""

from __future__ import annotations

from typing import Final

from moorage.errors import RequestError

_LONGEST: Final = 255


def check_name(name: str) -> None:
    """Raise RequestError, saying why, for a name that could mean anything but a folder directly in a repository."""
    why = _fault(name)
    if why:
        shown = name if len(name) <= 40 else f"{name[:40]}…"
        raise RequestError(f"{_printable(shown)} cannot be the name of a model: {why}")


def _fault(name: str) -> str:
    if not name.strip():
        return "it is empty"
    if name in (".", ".."):
        return "it means a folder outside of the repository's models"
    bad = next((sign for sign in "/\\\0" if sign in name), "")
    if bad:
        return {"/": "it holds a slash", "\\": "it holds a backslash", "\0": "it holds a NUL"}[bad]
    if not name.isprintable():
        return "it holds a character that cannot be printed"
    if len(name.encode(errors="surrogatepass")) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    return ""


def _printable(text: str) -> str:
    return f"'{text}'" if text.isprintable() else repr(text)
