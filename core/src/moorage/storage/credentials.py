"""Credentials from a file: the JSON file that TRITON_CLOUD_CREDENTIAL_PATH names, in Triton's format.

    {"s3": {"": {"key_id": "…", "secret_key": "…"}, "s3://bucket/deep": {…}}, "gs": {"": "/path/of/a/key.json"}, "as": {…}}

For each kind of store it maps the beginning of URLs to what opens them; the longest that fits counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from moorage.errors import StorageError

VARIABLE: Final = "TRITON_CLOUD_CREDENTIAL_PATH"


def stored(kind: str, *urls: str) -> Any:
    """What the file says for a URL under `kind` ("s3", "gs", "as"); None if there is no file or nothing that fits.

    A URL that can be written in several ways is given in all of them. Raises StorageError that names the file if it cannot be
    read or is not of that form; it never shows what is in it.
    """
    path = os.environ.get(VARIABLE, "")
    return best(_read(Path(path)).get(kind, {}), *urls) if path else None


def best(choices: Mapping[str, Any], *urls: str) -> Any:
    """The choice with the longest name that fits: the URL itself, or a beginning that ends where a part of its path does."""
    fitting = [name for name in choices if any(_fits(name.rstrip("/"), url.rstrip("/")) for url in urls)]
    return choices[max(fitting, key=len)] if fitting else None


def _fits(name: str, url: str) -> bool:
    return not name or url == name or url.startswith(f"{name}/")


def _read(path: Path) -> Mapping[str, Mapping[str, Any]]:
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise StorageError(f"{VARIABLE} names {path}, which cannot be read: {error.strerror}") from error
    except ValueError:
        raise StorageError(f"{VARIABLE} names {path}, which is not JSON") from None
    if not isinstance(content, dict) or not all(isinstance(choices, dict) for choices in content.values()):
        raise StorageError(f'{VARIABLE} names {path}, which should map "s3", "gs" or "as" to URLs and their credentials')
    return content
