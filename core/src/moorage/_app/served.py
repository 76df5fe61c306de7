"""Asks a running server what it serves, and what it would do."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from moorage._control.forecast import Step
from moorage.config import parse_json
from moorage.config.schema import ModelConfig
from moorage.errors import InvalidArgument, Unavailable

TIMEOUT_SECONDS = 30.0


def served(server: str) -> dict[str, dict[int, ModelConfig]]:
    """Model to version to configuration of all that serves, by the server's HTTP endpoint at the URL `server`.

    Raises InvalidArgument if that is no URL, Unavailable if there is no answer or not that of a model server.
    """
    base = _base(server)
    found: dict[str, dict[int, ModelConfig]] = {}
    for entry in _ask(f"{base}/v2/repository/index", {"ready": True}):
        name, version = str(entry["name"]), str(entry.get("version", ""))
        if version.isdigit():
            config = _ask(f"{base}/v2/models/{quote(name, safe='')}/versions/{version}/config")
            found.setdefault(name, {})[int(version)] = parse_json(config, file=base, model=name).config
    return found


def planned(server: str) -> list[Step]:
    """What the server at the URL says of its own repositories. Raises as `served` does."""
    steps = _ask(f"{_base(server)}/v2/repository/plan")
    try:
        return [Step(**step) for step in steps]
    except TypeError as error:
        raise Unavailable(f"{server} does not answer as a moorage server does") from error


def _base(server: str) -> str:
    base = server.rstrip("/") if "://" in server else f"http://{server.rstrip('/')}"
    if not base.startswith(("http://", "https://")):
        raise InvalidArgument(f"--server {server}: give the URL of the server's HTTP endpoint, such as http://localhost:8000")
    return base


def _ask(url: str, body: object = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})  # noqa: S310  checked by _base
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise Unavailable(f"{url} answered {error.code}: {error.read(500).decode(errors='replace')}") from error
    except (OSError, ValueError) as error:
        raise Unavailable(f"cannot ask {url}: {error}") from error
