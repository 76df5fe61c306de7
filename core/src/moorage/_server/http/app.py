"""The HTTP application: litestar for everything, and a short way past it for inference."""

from __future__ import annotations

from typing import Any

from litestar import Litestar, MediaType, Request, Response, post
from litestar.exceptions import HTTPException
from litestar.handlers import HTTPRouteHandler
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import SwaggerRenderPlugin

import moorage
from moorage._server.http.absent import absent_routes
from moorage._server.http.asgi import ASGIApp, Receive, Scope, Send
from moorage._server.http.control import log_routes, repository_routes
from moorage._server.http.generate import GenerateEndpoint
from moorage._server.http.infer import InferEndpoint
from moorage._server.http.lane import Lane
from moorage._server.http.models import model_routes, server_routes, statistics_routes
from moorage._server.http.options import HttpOptions
from moorage._server.http.paths import GeneratePath, generate_path, infer_segments, is_clean
from moorage._server.http.replies import error_body, error_reply, send_reply
from moorage._server.http.restrictions import guard
from moorage._server.ports import InferencePort, ManagementPort
from moorage.errors import MoorageError, NotFound

_NO_METHOD = "TRACE"


def build_app(inference: InferencePort, admin: ManagementPort, options: HttpOptions) -> Dispatcher:
    """The ASGI application that speaks the KServe v2 protocol, and Triton's extensions of it, over HTTP."""
    endpoint = InferEndpoint(inference, admin, options)
    generate = GenerateEndpoint(inference, admin, options)
    limit = options.max_input_size
    rooms = Litestar(
        route_handlers=[
            *server_routes(admin),
            *model_routes(admin),
            *statistics_routes(admin),
            *repository_routes(admin, limit),
            *log_routes(admin, limit),
            *_infer_routes(endpoint),
            *_generate_routes(generate),
            *absent_routes(),
        ],
        guards=[guard(options.restricted)],
        exception_handlers={HTTPException: _http_error, MoorageError: _moorage_error, Exception: _unexpected},
        openapi_config=OpenAPIConfig(
            title="moorage",
            version=moorage.__version__,
            path="/docs",
            render_plugins=[SwaggerRenderPlugin()],
            operation_id_creator=_operation_id,
        ),
        request_max_body_size=None,
        logging_config=None,
    )
    lane = Lane(endpoint, inference, limit)
    return Dispatcher(endpoint, generate, rooms, lane)


class Dispatcher:
    """The outermost application: takes inference requests past the router, and refuses paths that the router would tidy up."""

    def __init__(self, infer: InferEndpoint, generate: GenerateEndpoint, rest: ASGIApp, lane: Lane) -> None:
        self._infer = infer
        self._generate = generate
        self._rest = rest
        self.lane = lane
        """For the server, which gives it the requests that need no application."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._rest(scope, receive, send)
            return
        path = scope["raw_path"]
        if scope["method"] == "POST" and (segments := infer_segments(path)):
            await self._infer(*segments, scope, receive, send)
        elif scope["method"] == "POST" and (wanted := generate_path(path)):
            await self._generate(wanted, scope, receive, send)
        elif is_clean(path):
            await self._rest(_for_router(scope, path), receive, send)
        else:
            await send_reply(send, error_reply(NotFound(f"there is nothing at {path.decode('latin-1')}")))


def _for_router(scope: Any, path: bytes) -> Any:
    """The scope with its path still encoded, so that a part of it keeps its slashes; handlers decode what they take.

    Of a path that it knows the router answers OPTIONS by itself; asked with a method that no path has, it tells 405 from 404.
    """
    method = _NO_METHOD if scope["method"] == "OPTIONS" else scope["method"]
    return {**scope, "method": method, "path": path.decode("latin-1")}


def _infer_routes(endpoint: InferEndpoint) -> list[HTTPRouteHandler]:
    @post(
        ["/v2/models/{name:str}/infer", "/v2/models/{name:str}/versions/{version:str}/infer"],
        opt={"api": "inference"},
        status_code=200,
        summary="Run a model",
    )
    async def infer(request: Request[Any, Any, Any]) -> ASGIApp:
        """Never asked in practice: it is here for the 405 of other methods and for the API's description."""
        parts = request.path_params

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await endpoint(parts["name"], parts.get("version", ""), scope, receive, send)

        return answer

    return [infer]


def _generate_routes(endpoint: GenerateEndpoint) -> list[HTTPRouteHandler]:
    """As those for infer: for the 405 of other methods and for the API's description."""

    def answer_of(request: Request[Any, Any, Any], streaming: bool) -> ASGIApp:
        parts = request.path_params

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            await endpoint(GeneratePath(parts["name"], parts.get("version", ""), streaming), scope, receive, send)

        return answer

    @post(
        ["/v2/models/{name:str}/generate", "/v2/models/{name:str}/versions/{version:str}/generate"],
        opt={"api": "inference"},
        status_code=200,
        summary="Run a model, inputs and outputs as one flat JSON object",
    )
    async def generate(request: Request[Any, Any, Any]) -> ASGIApp:
        return answer_of(request, False)

    @post(
        ["/v2/models/{name:str}/generate_stream", "/v2/models/{name:str}/versions/{version:str}/generate_stream"],
        opt={"api": "inference"},
        status_code=200,
        summary="Run a model, each of its responses as a server-sent event",
    )
    async def generate_stream(request: Request[Any, Any, Any]) -> ASGIApp:
        return answer_of(request, True)

    return [generate, generate_stream]


def _operation_id(handler: HTTPRouteHandler, _method: Any, components: list[Any]) -> str:
    """A name for a handler's operation that also tells its paths apart."""
    parts = [handler.fn.__name__, *(part.name for part in components if not isinstance(part, str))]
    return "_".join([*parts, "in_repository"] if "models" not in components and len(components) == 4 else parts)


def _http_error(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    path = request.scope["path"]
    if error.status_code == 404:
        message = f"there is nothing at {path}"
    elif error.status_code == 405:
        error.headers = {"allow": (error.headers or {}).get("allow", "").replace(", OPTIONS", "")}
        message = f"{path} does not take {request.scope['method']}, but {error.headers['allow']}"
    else:
        message = error.detail
    return _json(error_body(message), error.status_code, error.headers)


def _moorage_error(_request: Request[Any, Any, Any], error: MoorageError) -> Response[bytes]:
    reply = error_reply(error)
    return _json(bytes(reply.body[0]), reply.status)


def _unexpected(_request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    return _json(bytes(error_reply(error).body[0]), 500)


def _json(body: bytes, status: int, headers: dict[str, str] | None = None) -> Response[bytes]:
    return Response(body, status_code=status, media_type=MediaType.JSON, headers=headers)
