"""Whether what was observed is what was recorded."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

ANY: Final = "<any>"
"""Stands for a value that must be there and is not compared."""

TEXT: Final = re.compile(r"^<text(?:: (.*))?>$")
"""Stands for a non-empty message, that mentions the given words."""


def mentions(text: str, word: str) -> bool:
    return re.search(r"(?<![A-Za-z0-9_])" + re.escape(word) + r"(?![A-Za-z0-9_])", text) is not None


def short(value: Any, limit: int = 160) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= limit else text[:limit] + "..."


def differs(want: Any, got: Any, path: str = "$") -> str | None:
    """None when equal, else a sentence that names the first difference."""
    if want == ANY:
        return None
    if isinstance(want, str) and (prose := TEXT.match(want)):
        return _message_differs(prose, got, path)
    if isinstance(want, bool) or isinstance(got, bool):
        return None if want is got else _unequal(want, got, path)
    if isinstance(want, int | float) and isinstance(got, int | float):
        return None if _same_number(want, got) else _unequal(want, got, path)
    if isinstance(want, dict) and isinstance(got, dict):
        return _mapping_differs(want, got, path)
    if isinstance(want, list) and isinstance(got, list):
        return _list_differs(want, got, path)
    return None if want == got else _unequal(want, got, path)


def _unequal(want: Any, got: Any, path: str) -> str:
    return f"{path}: expected {short(want)}, got {short(got)}"


def _same_number(want: float, got: float) -> bool:
    if want == got:
        return True
    if isinstance(want, int) and isinstance(got, int):
        return False
    return math.isclose(want, got, rel_tol=1e-5, abs_tol=1e-7) or (math.isnan(want) and math.isnan(got))


def _message_differs(prose: re.Match[str], got: Any, path: str) -> str | None:
    if not isinstance(got, str) or not got:
        return f"{path}: expected a non-empty message, got {short(got)}"
    seen = TEXT.match(got)
    for word in (prose.group(1) or "").split():
        there = word in (seen.group(1) or "").split() if seen else mentions(got, word)
        if not there:
            return f"{path}: expected a message that mentions {word!r}"
    return None


def _mapping_differs(want: dict[str, Any], got: dict[str, Any], path: str) -> str | None:
    for key in want:
        if key not in got:
            return f"{path}: key {key!r} is missing"
    for key, value in got.items():
        if key not in want:
            return f"{path}: unexpected key {key!r} = {short(value)}"
    found = (differs(value, got[key], f"{path}.{key}") for key, value in want.items())
    return next((one for one in found if one), None)


def _list_differs(want: list[Any], got: list[Any], path: str) -> str | None:
    if len(want) != len(got):
        return f"{path}: expected {len(want)} items {short(want)}, got {len(got)} {short(got)}"
    found = (differs(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(want, got, strict=True)))
    return next((one for one in found if one), None)


def matches(want: Any, got: Any) -> bool:
    """Partial match: mappings are subsets, every wanted list item is somewhere."""
    if isinstance(want, dict) and isinstance(got, dict):
        return all(key in got and matches(value, got[key]) for key, value in want.items())
    if isinstance(want, list) and isinstance(got, list):
        return all(any(matches(one, other) for other in got) for one in want)
    return differs(want, got) is None


def allow_client_error(want: Any, got: Any) -> Any:
    """The recording, with 500 and INTERNAL replaced where the server rightly blames the client: 400 or 404."""
    if isinstance(want, dict) and isinstance(got, dict):
        eased = {key: allow_client_error(value, got.get(key)) for key, value in want.items()}
        if eased.get("status") == 500 and got.get("status") in {400, 404}:
            eased["status"] = got["status"]
        if eased.get("code") == "INTERNAL" and got.get("code") in {"INVALID_ARGUMENT", "NOT_FOUND"}:
            eased["code"] = got["code"]
        return eased
    if isinstance(want, list) and isinstance(got, list):
        return [allow_client_error(a, b) for a, b in zip(want, got, strict=False)] + want[len(got) :]
    return want


def one_error_status(value: Any) -> Any:
    """All error statuses folded into one, to tell wrong codes from wrong behaviour."""
    if isinstance(value, dict):
        folded = {key: one_error_status(item) for key, item in value.items()}
        if isinstance(folded.get("status"), int) and folded["status"] >= 400:
            folded["status"] = "error"
        if isinstance(folded.get("code"), str) and folded["code"] != "OK":
            folded["code"] = "error"
        return folded
    return [one_error_status(item) for item in value] if isinstance(value, list) else value
