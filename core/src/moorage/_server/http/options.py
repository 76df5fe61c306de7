"""What the HTTP server can be told."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import field, frozen

from moorage._server.secret import Secret
from moorage.errors import InvalidArgument

API_GROUPS: Final = frozenset(
    {
        "health",
        "metadata",
        "inference",
        "shared-memory",
        "model-config",
        "model-repository",
        "statistics",
        "trace",
        "logging",
    }
)
"""The groups of endpoints that `--http-restricted-api` can name."""


@frozen
class Restriction:
    """A header, and the value it must have, for a group of endpoints. A value `@FILE` stands for what the file holds."""

    header: str
    value: str
    secret: Secret = field(init=False, eq=False, repr=False)

    @secret.default
    def _secret(self) -> Secret:
        return Secret(self.value)


def _check_pattern(_: object, __: object, pattern: str) -> None:
    try:
        re.compile(pattern)
    except re.error as error:
        raise InvalidArgument(f"--http-header-forward-pattern '{pattern}' is no regular expression: {error}") from error


@frozen
class HttpOptions:
    """Settings of the HTTP server. `port` 0 takes any free port; `metrics_port` None serves no metrics."""

    address: str = "127.0.0.1"
    port: int = 8000
    reuse_port: bool = False
    """Let several servers share the port (SO_REUSEPORT)."""
    metrics_address: str = ""
    """Empty for the same as `address`."""
    metrics_port: int | None = 8002
    header_forward_pattern: str = field(default="", validator=_check_pattern)
    """Headers whose name holds a match of this regular expression become request parameters; empty for none."""
    restricted: Mapping[str, Restriction] = field(factory=dict)
    """By group of endpoints."""
    max_input_size: int = 64 * 1024 * 1024
    """Bytes of a request's body, before and after decompression."""
    keep_alive_seconds: int = 75
    json_halves: bool = False
    """Take and give FP16 and BF16 as JSON numbers, too."""


def parse_restricted(values: Sequence[str]) -> dict[str, Restriction]:
    """Restrictions by group, from `--http-restricted-api` values of the form `GROUP,GROUP:HEADER=VALUE`."""
    found: dict[str, Restriction] = {}
    for text in values:
        groups, colon, rule = text.partition(":")
        header, equals, value = rule.partition("=")
        if not (colon and equals and header.strip()):
            raise InvalidArgument(f"--http-restricted-api '{text}': write GROUP[,GROUP...]:HEADER=VALUE")
        for group in (part.strip() for part in groups.split(",")):
            if group not in API_GROUPS:
                known = ", ".join(sorted(API_GROUPS))
                raise InvalidArgument(f"--http-restricted-api '{text}': no group '{group}'; there are {known}")
            if group in found:
                raise InvalidArgument(f"--http-restricted-api '{text}': group '{group}' is restricted twice")
            found[group] = _restriction(text, header, value)
    return found


def _restriction(text: str, header: str, value: str) -> Restriction:
    try:
        return Restriction(header.strip().lower(), value.strip())
    except InvalidArgument as error:
        raise InvalidArgument(f"--http-restricted-api '{text}': {error}") from error
