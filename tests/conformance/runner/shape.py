"""Brings an observation into the form that is compared: wording blurred, lists without a promised order sorted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from conformance.runner.compare import ANY, mentions

PROSE_KEYS: Final = frozenset({"error", "error_message", "reason"})
UNORDERED_KEYS: Final = frozenset({"versions", "extensions", "model_stats", "models", "platforms"})
ALWAYS_IGNORED: Final = ("*.ns", "*.last_inference")


def _named(path: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def blur(value: Any, words: Sequence[str], ignore: Sequence[str], path: str = "") -> Any:
    """Replace what is not promised: ignored paths and the wording of messages."""
    if path and _named(path, ignore):
        return ANY
    if isinstance(value, dict):
        return {key: _blur_item(key, item, words, ignore, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [blur(item, words, ignore, f"{path}.{i}") for i, item in enumerate(value)]
    return value


def _blur_item(key: str, item: Any, words: Sequence[str], ignore: Sequence[str], path: str) -> Any:
    if key in PROSE_KEYS and isinstance(item, str) and item and item != "unloaded":
        found = [word for word in words if mentions(item, word)]
        return f"<text: {' '.join(found)}>" if found else "<text>"
    return blur(item, words, ignore, path)


def without(value: Any, patterns: Sequence[str], path: str = "") -> Any:
    """Leave out what the paths name, whether it is there or not."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not _named(f"{path}.{key}", patterns)}
        return {key: without(item, patterns, f"{path}.{key}") for key, item in kept.items()}
    if isinstance(value, list):
        return [without(item, patterns, f"{path}.{i}") for i, item in enumerate(value)]
    return value


def order(value: Any, extra: Sequence[str] = (), path: str = "", key: str | None = None) -> Any:
    """Sort the lists whose order nobody promises."""
    if isinstance(value, dict):
        ordered = {name: order(item, extra, f"{path}.{name}", name) for name, item in value.items()}
        if "model_name" in ordered and isinstance(ordered.get("outputs"), list):  # an inference answer
            ordered["outputs"].sort(key=lambda one: str(one.get("name")) if isinstance(one, dict) else "")
        return ordered
    if isinstance(value, list):
        items = [order(item, extra, f"{path}.{i}") for i, item in enumerate(value)]
        if key in UNORDERED_KEYS or _named(path, extra):
            items.sort(key=lambda one: json.dumps(one, sort_keys=True))
        return items
    return value


def pick(value: Any, path: str) -> Any:
    """The value at a dotted path, None where there is none."""
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if part.isdigit() and int(part) < len(value) else None
        elif isinstance(value, dict):
            value = value.get(part)
        else:
            return None
    return value
