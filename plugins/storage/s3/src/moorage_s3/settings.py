"""Settings that AWS's own tools have no variable for: the environment variables MOORAGE_S3_…"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, Self, TypeVar

from attrs import frozen

from moorage.errors import InvalidArgument

T = TypeVar("T")

STYLES: Final = ("auto", "path", "virtual")
_WORDS: Final = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@frozen
class Settings:
    """How the store is talked to, whatever the repository."""

    addressing_style: str = ""
    """"path": server/bucket, "virtual": bucket.server, "auto": what suits the server; empty: what the profile says."""
    anonymous: bool = False
    tls_verify: bool = True
    check_md5: bool | None = None
    """Whether what has come is compared with ETags that are MD5 sums; None: where no TLS does better."""
    connect_timeout: float = 10.0
    """Seconds until a connection must stand."""
    read_timeout: float = 60.0
    """Seconds that the store may be silent."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Those of the environment. Raises InvalidArgument for a value that cannot be meant, naming the variable."""
        style = environment.get("MOORAGE_S3_ADDRESSING_STYLE", "").strip().lower()
        if style and style not in STYLES:
            raise InvalidArgument(f"MOORAGE_S3_ADDRESSING_STYLE is '{style}': set it to {', '.join(STYLES)}")
        return cls(
            style,
            _flag(environment, "MOORAGE_S3_ANONYMOUS", default=False),
            _flag(environment, "MOORAGE_S3_TLS_VERIFY", default=True),
            _flag(environment, "MOORAGE_S3_CHECK_MD5", default=None),
            _seconds(environment, "MOORAGE_S3_CONNECT_TIMEOUT", cls().connect_timeout),
            _seconds(environment, "MOORAGE_S3_READ_TIMEOUT", cls().read_timeout),
        )


def _flag(environment: Mapping[str, str], name: str, *, default: T) -> bool | T:
    text = environment.get(name, "").strip()
    if not text:
        return default
    value = _WORDS.get(text.lower())
    if value is None:
        raise InvalidArgument(f"{name} is '{text}': set it to true or false")
    return value


def _seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "").strip()
    try:
        value = float(text) if text else default
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise InvalidArgument(f"{name} is '{text}': set it to a number of seconds above 0")
    return value
