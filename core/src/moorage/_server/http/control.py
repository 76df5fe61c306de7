"""The endpoints that change the server: the model repository, and the settings of the log."""

from __future__ import annotations

import base64
import binascii
from typing import Any

import attrs
import msgspec
from litestar import Response, get, post
from litestar.handlers import HTTPRouteHandler

from moorage._server.http.body import read_body
from moorage._server.http.codec.request import parse_json
from moorage._server.http.models import AnyRequest
from moorage._server.http.paths import model_name
from moorage._server.ports import AdminPort, ManagementPort
from moorage._server.version_list import PARAMETER as VERSIONS
from moorage._server.version_list import parse_versions
from moorage.control import LoadOptions
from moorage.errors import RequestError, Unsupported

DEPENDENTS = "unload_dependents"


class IndexRequest(msgspec.Struct):
    """`ready` leaves out what does not serve."""

    ready: bool = False


class LoadRequest(msgspec.Struct):
    """`parameters`: `config` (JSON text), `file:VERSION/PATH` (base64), `reload` ("always"), `versions` ("1,3")."""

    parameters: dict[str, Any] | None = None


_index_request = msgspec.json.Decoder(IndexRequest).decode
_load_request = msgspec.json.Decoder(LoadRequest).decode
_settings = msgspec.json.Decoder(dict[str, Any]).decode


def repository_routes(admin: ManagementPort, limit: int) -> list[HTTPRouteHandler]:
    """Index, load and unload."""

    @post(
        ["/v2/repository/index", "/v2/repository/{repository:str}/index"],
        opt={"api": "model-repository"},
        status_code=200,
        summary="The models that are in the repositories, and the state of their versions",
    )
    async def index(request: AnyRequest) -> list[dict[str, str]]:
        body = await _body(request, limit)
        wanted = parse_json(_index_request, body) if body else IndexRequest()
        return [
            _without_blanks(name=entry.name, version=entry.version, state=entry.state, reason=entry.reason)
            for entry in await admin.index(ready=wanted.ready)
        ]

    @post("/v2/repository/reload", opt={"api": "model-repository"}, status_code=200, summary="Load what has changed again")
    async def reload() -> list[dict[str, str]]:
        return [_without_blanks(name=one.name, state=one.state, reason=one.reason) for one in await admin.reload()]

    @get("/v2/repository/plan", opt={"api": "model-repository"}, summary="What the next poll, or a reload, would do")
    async def plan() -> list[dict[str, Any]]:
        return [attrs.asdict(step) for step in await admin.plan()]

    @post("/v2/repository/models/{name:str}/load", opt={"api": "model-repository"}, status_code=200, summary="Load a model")
    async def load(request: AnyRequest) -> Response[bytes]:
        model = model_name(request.path_params["name"])
        await admin.load(model, load_options(model, await _body(request, limit)))
        return _done()

    @post("/v2/repository/models/{name:str}/unload", opt={"api": "model-repository"}, status_code=200, summary="Unload a model")
    async def unload(request: AnyRequest) -> Response[bytes]:
        model = model_name(request.path_params["name"])
        dependents, versions = unload_options(model, await _body(request, limit))
        await admin.unload(model, dependents=dependents, versions=versions)
        return _done()

    @post(
        ["/v2/repository/{repository:str}/models/{name:str}/load", "/v2/repository/{repository:str}/models/{name:str}/unload"],
        opt={"api": "model-repository"},
        status_code=200,
        include_in_schema=False,
        sync_to_thread=False,
    )
    def in_one_repository(request: AnyRequest) -> Response[bytes]:
        parts = request.path_params
        raise Unsupported(
            f"model '{parts['name']}': a repository ('{parts['repository']}') cannot be chosen; leave it out of the path"
        )

    return [index, plan, reload, load, unload, in_one_repository]


def log_routes(admin: AdminPort, limit: int) -> list[HTTPRouteHandler]:
    """The settings of the log."""

    @get("/v2/logging", opt={"api": "logging"}, summary="The settings of the log", sync_to_thread=False)
    def log_settings() -> dict[str, bool | int | str]:
        return dict(admin.log_settings())

    @post("/v2/logging", opt={"api": "logging"}, status_code=200, summary="Change settings of the log")
    async def change_log_settings(request: AnyRequest) -> dict[str, bool | int | str]:
        body = await _body(request, limit)
        return dict(admin.update_log_settings(parse_json(_settings, body) if body else {}))

    return [log_settings, change_log_settings]


def load_options(model: str, body: memoryview) -> LoadOptions:
    """What a load request's body asks for. Raises RequestError that names the parameter that is wrong."""
    try:
        parsed: LoadRequest = parse_json(_load_request, body) if body else LoadRequest()
    except RequestError as error:
        raise RequestError(f"model '{model}': {error}") from error
    config: str | None = None
    files: dict[str, bytes] = {}
    force = False
    versions: frozenset[int] = frozenset()
    for key, value in (parsed.parameters or {}).items():
        if key == "reload" and value == "always":
            force = True
        elif key == "config" and isinstance(value, str):
            config = value
        elif key.startswith("file:") and isinstance(value, str):
            files[key.removeprefix("file:")] = _file(model, key, value)
        elif key == VERSIONS:
            versions = parse_versions(model, value)
        else:
            raise RequestError(
                f"load of model '{model}': parameter '{key}' is not `config` (JSON text), `file:VERSION/PATH` (base64 text),"
                ' `versions` ("1,3") or `reload` ("always")'
            )
    return LoadOptions(config, files, force, versions)


def _file(model: str, key: str, text: str) -> bytes:
    if key == "file:":
        raise RequestError(f"load of model '{model}': parameter 'file:' names no file")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise RequestError(f"load of model '{model}': parameter '{key}' is not base64: {error}") from error


def unload_options(model: str, body: memoryview) -> tuple[bool, frozenset[int]]:
    """Whether an unload is to take along what only this model used, and the versions it is limited to.

    A body that is no JSON, and an `unload_dependents` that is no boolean, are let pass, as Triton does. Raises RequestError for
    other parameters: an unload that should have been limited must not take the whole model.
    """
    try:
        parsed: LoadRequest = _load_request(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False, frozenset()
    parameters = parsed.parameters or {}
    unknown = sorted(parameters.keys() - {DEPENDENTS, VERSIONS})
    if unknown:
        raise RequestError(
            f"unload of model '{model}': parameter '{unknown[0]}' is not `{DEPENDENTS}` (true or false) or `{VERSIONS}` (\"2\")"
        )
    versions = parse_versions(model, parameters[VERSIONS]) if VERSIONS in parameters else frozenset()
    return parameters.get(DEPENDENTS) is True, versions


async def _body(request: AnyRequest, limit: int) -> memoryview:
    return await read_body(request.scope, request.receive, dict(request.scope["headers"]), limit)


def _without_blanks(**fields: str) -> dict[str, str]:
    """What is known; the name always."""
    return {key: value for key, value in fields.items() if value or key == "name"}


def _done() -> Response[bytes]:
    return Response(b"", status_code=200, media_type="text/plain")
