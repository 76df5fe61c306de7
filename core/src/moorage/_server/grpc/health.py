"""The standard health service, `grpc.health.v1.Health`: serving means ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from grpc_health.v1 import health_pb2

from moorage._server.grpc.lane import Call, Handler
from moorage._server.grpc.unary import Coroutines
from moorage._server.ports import AdminPort
from moorage.errors import NotFound

SERVICE: Final = "grpc.health.v1.Health"

_WATCH_SECONDS: Final = 0.5
_STATUS: Final = health_pb2.HealthCheckResponse.ServingStatus


class Health:
    """Answers for the server as a whole (service "") and for each of its services."""

    def __init__(self, admin: AdminPort, services: Iterable[str], coroutines: Coroutines) -> None:
        self._admin = admin
        self._services = frozenset(services) | {""}
        self._coroutines = coroutines

    def handlers(self) -> dict[str, Handler]:
        """Method name -> handler."""
        return {"Check": self._coroutines.handler(health_pb2.HealthCheckRequest, self._check), "Watch": self._watch}

    async def _check(self, request: Any) -> Any:
        if request.service not in self._services:
            raise NotFound(f"there is no service '{request.service}'")
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    def _status(self, service: str) -> Any:
        if service not in self._services:
            return _STATUS.SERVICE_UNKNOWN
        return _STATUS.SERVING if self._admin.ready() else _STATUS.NOT_SERVING

    def _watch(self, call: Call) -> None:
        call.read(lambda data: self._coroutines.start(call, lambda: self._report(call, data or b"")))

    async def _report(self, call: Call, data: bytes) -> None:
        """Send the status now and whenever it changes, until the client goes."""
        service = health_pb2.HealthCheckRequest.FromString(data).service
        gone = asyncio.Event()
        loop = asyncio.get_running_loop()
        call.on_end(partial(_call_on, loop, gone.set))
        sent: Any = None
        while not gone.is_set():
            status = self._status(service)
            if status != sent:
                sent = status
                call.write(health_pb2.HealthCheckResponse(status=status).SerializeToString())
            await _wait(gone, _WATCH_SECONDS)


def _call_on(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(callback)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
