"""The parameter `versions` of loads and unloads, which HTTP and gRPC share."""

from __future__ import annotations

from moorage.errors import RequestError
from moorage.types import parse_version

PARAMETER = "versions"


def parse_versions(model: str, value: object) -> frozenset[int]:
    """The versions that "1,3" or a single whole number means. Raises RequestError for anything else, an empty text too."""
    texts = value.split(",") if isinstance(value, str) else [str(value)]
    numbers = [parse_version(text.strip()) for text in texts]
    if isinstance(value, bool) or any(number is None for number in numbers):
        raise RequestError(
            f"model '{model}': parameter '{PARAMETER}' is {str(value)[:80]!r}: write numbers separated by commas, \"1,3\""
        )
    return frozenset(number for number in numbers if number is not None)
