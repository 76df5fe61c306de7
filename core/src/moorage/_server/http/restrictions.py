"""Endpoints that need a header with a secret value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard

from moorage._server.http.options import Restriction
from moorage.errors import Forbidden


def check_restriction(restriction: Restriction | None, headers: Mapping[bytes, bytes]) -> None:
    """Raises Forbidden if the headers lack what the restriction demands."""
    if restriction is None:
        return
    if not restriction.secret.matches(headers.get(restriction.header.encode("latin-1"))):
        raise Forbidden(f"this endpoint is restricted: it needs the right value in the header '{restriction.header}'")


def guard(restricted: Mapping[str, Restriction]) -> Guard:
    """A litestar guard that looks at the group in a handler's `opt["api"]`."""

    def check(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
        restriction = restricted.get(handler.opt.get("api", ""))
        check_restriction(restriction, dict(connection.scope["headers"]))

    return check
