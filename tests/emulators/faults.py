"""What the proxy can be told to do to a request, and what it remembers of one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from attrs import field, frozen

ALWAYS: Final = 1 << 30
"""`times` of a fault that never ends."""


class Seen(NamedTuple):
    """A request that has come in."""

    method: str
    target: str
    """Path and query; a whole URL if the client took the proxy for one of its own."""
    headers: Mapping[str, str]
    """Names in lower case."""
    kind: str = ""
    """What the proxy's `kind` function makes of it, such as "list"."""


def every(_: Seen) -> bool:
    """Matches all requests."""
    return True


def of_kind(*kinds: str) -> Callable[[Seen], bool]:
    """Matches requests of these kinds."""
    return lambda seen: seen.kind in kinds


def containing(text: str) -> Callable[[Seen], bool]:
    """Matches requests with a text in their target (which is percent-encoded)."""
    return lambda seen: text in seen.target


@frozen(eq=False)
class Fault:
    """Done to the first `times` requests that match. Fields can be combined; without `status` the emulator answers."""

    when: Callable[[Seen], bool] = every
    times: int = 1
    skip: int = 0
    """Matching requests that are let through first."""
    status: int = 0
    """Answer with this status, `headers` and `body` and ask no emulator."""
    headers: Mapping[str, str] = field(factory=dict)
    """Set in the answer, also in one of the emulator's; an empty value takes the header away."""
    body: bytes = b""
    delay: float = 0.0
    """Seconds before the answer."""
    until: threading.Event | None = None
    """The answer waits for it."""
    drop: bool = False
    """Close the connection without an answer."""
    cut_after: int | None = None
    """Close the connection after so many bytes of a body that is announced in full."""
    truncate_to: int | None = None
    """Announce and send no more than so many bytes of the body: it looks whole."""
    damage: bool = False
    """Change the first byte of the body."""
