"""What the parts of a URL's path mean."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import unquote

from moorage.errors import NotFound, RequestError
from moorage.types import LATEST, parse_version

_LONGEST_NAME = 255


class Target(NamedTuple):
    """The model and version that a path names."""

    name: str
    version: int


def infer_segments(raw_path: bytes) -> tuple[str, str] | None:
    """The still encoded name and version of `/v2/models/NAME[/versions/VERSION]/infer`, or None for any other path."""
    if not (raw_path.startswith(b"/v2/models/") and raw_path.endswith(b"/infer")):
        return None
    return _segments(raw_path)


class GeneratePath(NamedTuple):
    """The still encoded name and version of a path to a generate endpoint."""

    name: str
    version: str
    streaming: bool


def generate_path(raw_path: bytes) -> GeneratePath | None:
    """What `/v2/models/NAME[/versions/VERSION]/generate[_stream]` says, or None for any other path."""
    streaming = raw_path.endswith(b"/generate_stream")
    if not (raw_path.startswith(b"/v2/models/") and (streaming or raw_path.endswith(b"/generate"))):
        return None
    found = _segments(raw_path)
    return None if found is None else GeneratePath(*found, streaming)


def _segments(raw_path: bytes) -> tuple[str, str] | None:
    parts = raw_path.decode("latin-1").split("/")
    if len(parts) == 5:
        return parts[3], ""
    if len(parts) == 7 and parts[4] == "versions" and parts[5]:
        return parts[3], parts[5]
    return None


def target(name: str, version: str = "") -> Target:
    """The model that two still encoded parts of a path name; an empty version is the latest."""
    return Target(model_name(name), version_number(version))


def model_name(segment: str) -> str:
    """The name of a model, from one still encoded part of a path.

    Raises RequestError for what cannot be the name of a folder. The part before a last `::` is the repository and may hold
    slashes.
    """
    name = unquote(segment) if "%" in segment else segment
    plain = name.rpartition("::")[2]
    if (
        not name.isprintable()
        or not plain.strip()
        or plain in (".", "..")
        or "/" in plain
        or "\\" in plain
        or len(plain.encode()) > _LONGEST_NAME
    ):
        raise RequestError(f"{_shown(name)} cannot be the name of a model")
    return name


def _shown(name: str) -> str:
    return repr(name if len(name) <= 80 else name[:80] + "...")


def version_number(text: str) -> int:
    """The version that a part of a path means. Raises NotFound if it means none."""
    if not text:
        return LATEST
    number = parse_version(text)
    if number is None:
        raise NotFound(f"'{text[:80]}' is not a version: a version is a whole number")
    return number


def is_clean(raw_path: bytes) -> bool:
    """Whether a path has no empty part; the control endpoints may end with a slash."""
    if raw_path.endswith((b"/load/", b"/unload/")):
        raw_path = raw_path[:-1]
    return b"//" not in raw_path and not (raw_path.endswith(b"/") and len(raw_path) > 1)
