"""The endpoints of extensions that are not there: clients are told so, and can ask what is registered, which is nothing."""

from __future__ import annotations

from typing import Any

from litestar import Response, get, post, route
from litestar.enums import HttpMethod
from litestar.handlers import HTTPRouteHandler

from moorage._server.http.models import AnyRequest
from moorage.errors import NotFound, Unsupported

_MEMORY = {"api": "shared-memory"}
_KINDS = ("systemsharedmemory", "cudasharedmemory")


def absent_routes() -> list[HTTPRouteHandler]:
    """Shared memory and traces."""
    return [*_shared_memory_routes(), _trace_route()]


def _shared_memory_routes() -> list[HTTPRouteHandler]:
    @get([f"/v2/{kind}/status" for kind in _KINDS], opt=_MEMORY, include_in_schema=False, sync_to_thread=False)
    def regions() -> list[Any]:
        return []

    @get(
        [f"/v2/{kind}/region/{{name:str}}/status" for kind in _KINDS],
        opt=_MEMORY,
        include_in_schema=False,
        sync_to_thread=False,
    )
    def region(request: AnyRequest) -> None:
        raise NotFound(f"there is no shared memory region '{request.path_params['name']}'")

    @post(
        [f"/v2/{kind}/region/{{name:str}}/register" for kind in _KINDS],
        opt=_MEMORY,
        include_in_schema=False,
        sync_to_thread=False,
    )
    def register(request: AnyRequest) -> None:
        name = request.path_params["name"]
        raise Unsupported(
            f"shared memory regions ('{name}') cannot be registered with this server; send tensors in the request"
        )

    @post(
        [path for kind in _KINDS for path in (f"/v2/{kind}/unregister", f"/v2/{kind}/region/{{name:str}}/unregister")],
        opt=_MEMORY,
        status_code=200,
        include_in_schema=False,
        sync_to_thread=False,
    )
    def unregister() -> Response[bytes]:
        return Response(b"", media_type="text/plain")

    return [regions, region, register, unregister]


def _trace_route() -> HTTPRouteHandler:
    @route(
        ["/v2/trace/setting", "/v2/models/{name:str}/trace/setting"],
        http_method=[HttpMethod.GET, HttpMethod.POST],
        opt={"api": "trace"},
        include_in_schema=False,
        sync_to_thread=False,
    )
    def trace_settings() -> None:
        raise Unsupported("this server has no trace settings")

    return trace_settings
