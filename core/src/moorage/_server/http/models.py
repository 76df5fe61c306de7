"""The endpoints about the server and its models: health, metadata, configuration, statistics."""

from __future__ import annotations

from typing import Any

from attrs import asdict
from litestar import Request, Response, get
from litestar.handlers import HTTPRouteHandler

from moorage import config as configuration
from moorage._admin import Duration, ModelStatistics
from moorage._server.http.paths import Target, target
from moorage._server.ports import AdminPort
from moorage.errors import MoorageError, NotFound, RequestError

AnyRequest = Request[Any, Any, Any]

_HEALTH = {"api": "health"}
_METADATA = {"api": "metadata"}
_STATISTICS = {"api": "statistics"}
_MODEL = "/v2/models/{name:str}"
_VERSION = "/v2/models/{name:str}/versions/{version:str}"


def server_routes(admin: AdminPort) -> list[HTTPRouteHandler]:
    """Whether the server lives, is ready, and what it is."""

    @get("/v2/health/live", opt=_HEALTH, summary="Whether the server answers", sync_to_thread=False)
    def live() -> Response[bytes]:
        return _health(admin.live())

    @get("/v2/health/ready", opt=_HEALTH, summary="Whether every model that is wanted serves", sync_to_thread=False)
    def ready() -> Response[bytes]:
        return _health(admin.ready())

    @get("/v2", opt=_METADATA, summary="Name, version and extensions of the server", sync_to_thread=False)
    def metadata() -> dict[str, Any]:
        return asdict(admin.server_metadata())

    return [live, ready, metadata]


def model_routes(admin: AdminPort) -> list[HTTPRouteHandler]:
    """What there is to know of a model, or of one of its versions."""

    @get([f"{_MODEL}/ready", f"{_VERSION}/ready"], opt=_HEALTH, summary="Whether a model serves", sync_to_thread=False)
    def model_ready(request: AnyRequest) -> Response[bytes]:
        _require_ready(admin, _model(request))
        return _health(True)

    @get([_MODEL, _VERSION], opt=_METADATA, summary="Versions, inputs and outputs of a model", sync_to_thread=False)
    def model_metadata(request: AnyRequest) -> dict[str, Any]:
        return asdict(admin.model_metadata(*_model(request)))

    @get(
        [f"{_MODEL}/config", f"{_VERSION}/config"],
        opt={"api": "model-config"},
        summary="The configuration of a model, defaults filled in",
        sync_to_thread=False,
    )
    def model_config(request: AnyRequest) -> dict[str, Any]:
        return configuration.to_json(admin.model_config(*_model(request)))

    return [model_ready, model_metadata, model_config]


def statistics_routes(admin: AdminPort) -> list[HTTPRouteHandler]:
    """Counts and times of all models, of one, or of one version."""

    @get("/v2/models/stats", opt=_STATISTICS, summary="Statistics of all models", sync_to_thread=False)
    def all_statistics() -> dict[str, Any]:
        return {"model_stats": [statistics_json(one) for one in admin.statistics()]}

    @get(
        [f"{_MODEL}/stats", f"{_VERSION}/stats"],
        opt=_STATISTICS,
        summary="Statistics of a model",
        sync_to_thread=False,
    )
    def model_statistics(request: AnyRequest) -> dict[str, Any]:
        model = _model(request)
        try:
            found = admin.statistics(*model)
        except NotFound as error:
            raise RequestError(str(error)) from error
        return {"model_stats": [statistics_json(one) for one in found]}

    return [all_statistics, model_statistics]


def _model(request: AnyRequest) -> Target:
    """The model in a request's path."""
    parts = request.path_params
    return target(parts["name"], parts.get("version", ""))


def _health(good: bool) -> Response[bytes]:
    return Response(b"", status_code=200 if good else 400, media_type="text/plain")


def _require_ready(admin: AdminPort, model: Target) -> None:
    try:
        ready = admin.model_ready(*model)
    except MoorageError as error:
        raise RequestError(str(error)) from error
    if not ready:
        raise RequestError(f"model '{model.name}' is not ready")


def statistics_json(one: ModelStatistics) -> dict[str, Any]:
    """The statistics of a version as the protocol spells them."""
    kinds = ("success", "fail", "queue", "compute_input", "compute_infer", "compute_output", "cache_hit", "cache_miss")
    return {
        "name": one.name,
        "version": one.version,
        "last_inference": one.last_inference,
        "inference_count": one.inference_count,
        "execution_count": one.execution_count,
        "inference_stats": {kind: _duration(getattr(one, kind)) for kind in kinds},
        "response_stats": {},
        "batch_stats": [
            {
                "batch_size": batch.batch_size,
                "compute_input": _duration(batch.compute_input),
                "compute_infer": _duration(batch.compute_infer),
                "compute_output": _duration(batch.compute_output),
            }
            for batch in one.batch_stats
        ],
        "memory_usage": [],
    }


def _duration(value: Duration) -> dict[str, int]:
    return {"count": value.count, "ns": value.ns}
