"""Every call of the inference service that is not an inference. All run on the event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from moorage._server.grpc import messages
from moorage._server.grpc.decode import read_version
from moorage._server.ports import AdminPort
from moorage._server.version_list import PARAMETER as VERSIONS
from moorage._server.version_list import parse_versions
from moorage.config import to_proto
from moorage.control import LoadOptions
from moorage.errors import NotFound, RequestError, Unsupported

Answer = Callable[[Any], Awaitable[Any]]
"""From a request message to a response message. Raises MoorageError."""

_FILE_PREFIX: Final = "file:"
_NO_REGIONS: Final = "shared memory regions cannot be registered with this server; send tensors in the request"


class AdminCalls:
    """The calls, by the snake-case form of their names."""

    def __init__(self, admin: AdminPort) -> None:
        self._admin = admin

    def answers(self) -> Mapping[str, Answer]:
        """Method name -> what answers it."""
        return {
            "ServerLive": self._server_live,
            "ServerReady": self._server_ready,
            "ModelReady": self._model_ready,
            "ServerMetadata": self._server_metadata,
            "ModelMetadata": self._model_metadata,
            "ModelConfig": self._model_config,
            "ModelStatistics": self._model_statistics,
            "RepositoryIndex": self._index,
            "RepositoryModelLoad": self._load,
            "RepositoryModelUnload": self._unload,
            "LogSettings": self._log_settings,
            "TraceSetting": _no_tracing,
            "SystemSharedMemoryStatus": _nothing("SystemSharedMemoryStatusResponse"),
            "SystemSharedMemoryRegister": _no_shared_memory,
            "SystemSharedMemoryUnregister": _nothing("SystemSharedMemoryUnregisterResponse"),
            "CudaSharedMemoryStatus": _nothing("CudaSharedMemoryStatusResponse"),
            "CudaSharedMemoryRegister": _no_shared_memory,
            "CudaSharedMemoryUnregister": _nothing("CudaSharedMemoryUnregisterResponse"),
        }

    async def _server_live(self, _request: Any) -> Any:
        return messages.make("ServerLiveResponse", live=self._admin.live())

    async def _server_ready(self, _request: Any) -> Any:
        return messages.make("ServerReadyResponse", ready=self._admin.ready())

    async def _model_ready(self, request: Any) -> Any:
        version = read_version(request.version, request.name)
        try:
            ready = self._admin.model_ready(request.name, version)
        except NotFound:
            ready = False
        return messages.make("ModelReadyResponse", ready=ready)

    async def _server_metadata(self, _request: Any) -> Any:
        return messages.server_metadata(self._admin.server_metadata())

    async def _model_metadata(self, request: Any) -> Any:
        version = read_version(request.version, request.name)
        return messages.model_metadata(self._admin.model_metadata(request.name, version))

    async def _model_config(self, request: Any) -> Any:
        version = read_version(request.version, request.name)
        return messages.make("ModelConfigResponse", config=to_proto(self._admin.model_config(request.name, version)))

    async def _model_statistics(self, request: Any) -> Any:
        version = read_version(request.version, request.name)
        try:
            return messages.statistics(self._admin.statistics(request.name, version))
        except NotFound as error:
            raise RequestError(str(error)) from error

    async def _index(self, request: Any) -> Any:
        _refuse_repository(request)
        return messages.index(await self._admin.index(ready=request.ready))

    async def _load(self, request: Any) -> Any:
        _refuse_repository(request)
        await self._admin.load(request.model_name, load_options(request))
        return messages.make("RepositoryModelLoadResponse")

    async def _unload(self, request: Any) -> Any:
        _refuse_repository(request)
        dependents, versions = _unload_options(request)
        await self._admin.unload(request.model_name, dependents=dependents, versions=versions)
        return messages.make("RepositoryModelUnloadResponse")

    async def _log_settings(self, request: Any) -> Any:
        changes = {name: _chosen(name, value) for name, value in request.settings.items()}
        settings = self._admin.update_log_settings(changes) if changes else self._admin.log_settings()
        return messages.log_settings(settings)


def load_options(request: Any) -> LoadOptions:
    """How a RepositoryModelLoadRequest wants the model loaded. Raises RequestError."""
    config: str | None = None
    files: dict[str, bytes] = {}
    force = False
    versions: frozenset[int] = frozenset()
    for name, parameter in request.parameters.items():
        if name == "config":
            config = _parameter(request, name, parameter, "string_param")
        elif name.startswith(_FILE_PREFIX):
            files[name.removeprefix(_FILE_PREFIX)] = _parameter(request, name, parameter, "bytes_param")
        elif name == VERSIONS:
            versions = _versions(request, parameter)
        elif name == "reload" and _parameter(request, name, parameter, "string_param") == "always":
            force = True
        else:
            raise RequestError(
                f"load of model '{request.model_name}': parameter '{name}' is not config, file:VERSION/PATH, versions (\"1,3\")"
                ' or reload ("always")'
            )
    return LoadOptions(config, files, force, versions)


def _unload_options(request: Any) -> tuple[bool, frozenset[int]]:
    """Whether an unload is to take along what only this model used, and the versions it is limited to."""
    dependents = False
    versions: frozenset[int] = frozenset()
    for name, parameter in request.parameters.items():
        if name == "unload_dependents":
            dependents = bool(_parameter(request, name, parameter, "bool_param"))
        elif name == VERSIONS:
            versions = _versions(request, parameter)
        else:
            raise RequestError(
                f"unload of model '{request.model_name}': parameter '{name}' is not unload_dependents or versions (\"2\")"
            )
    return dependents, versions


def _versions(request: Any, parameter: Any) -> frozenset[int]:
    kind = parameter.WhichOneof("parameter_choice")
    return parse_versions(request.model_name, getattr(parameter, kind) if kind else "")


def _parameter(request: Any, name: str, parameter: Any, kind: str) -> Any:
    given = parameter.WhichOneof("parameter_choice")
    if given != kind:
        raise RequestError(f"model '{request.model_name}': parameter '{name}' is a {given}, expected {kind}")
    return getattr(parameter, kind)


def _chosen(name: str, value: Any) -> bool | int | str:
    kind = value.WhichOneof("parameter_choice")
    if kind is None:
        raise RequestError(f"log setting '{name}' has no value")
    chosen: bool | int | str = getattr(value, kind)
    return chosen


def _refuse_repository(request: Any) -> None:
    if request.repository_name:
        raise Unsupported(
            f"repository '{request.repository_name}': calls for one repository are not supported, leave the name out"
        )


def _nothing(response: str) -> Answer:
    async def answer(_request: Any) -> Any:
        return messages.make(response)

    return answer


async def _no_shared_memory(_request: Any) -> Any:
    raise Unsupported(_NO_REGIONS)


async def _no_tracing(_request: Any) -> Any:
    raise Unsupported("this server has no trace settings")
