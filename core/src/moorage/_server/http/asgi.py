"""The ASGI interface in types that are as loose as its messages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

Scope = Any
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
ASGIApp = Callable[[Any, Any, Any], Coroutine[Any, Any, None]]

READ_INTO: Final = "moorage.read_into"
"""The extension of a scope by which a body can be read straight into memory."""
