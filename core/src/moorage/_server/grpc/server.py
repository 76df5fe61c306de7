"""The gRPC server: which handler answers which method, and starting and stopping."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from concurrent import futures

import grpc

from moorage._server.grpc import health, native, portable, reflection
from moorage._server.grpc.access import Access
from moorage._server.grpc.admin import AdminCalls
from moorage._server.grpc.health import Health
from moorage._server.grpc.infer import UnaryInference
from moorage._server.grpc.lane import Call, Handler, MethodTable
from moorage._server.grpc.options import GrpcOptions, channel_options, credentials, listening_address
from moorage._server.grpc.reflection import Reflection
from moorage._server.grpc.stream import StreamInference
from moorage._server.grpc.unary import Coroutines
from moorage._server.ports import AdminPort, SubmitPort
from moorage.config import proto
from moorage.errors import InvalidArgument, Unavailable

Methods = dict[str, Handler]
"""Full method name (`/package.Service/Method`) -> handler."""


class GrpcServer:
    """Serves inference, administration, health and reflection on one port.

    `start` and `stop` are called on the event loop on which the methods of `admin` then run; those of `inference` are called on
    a thread of the server.
    """

    def __init__(self, inference: SubmitPort, admin: AdminPort, options: GrpcOptions) -> None:
        self._inference = inference
        self._admin = admin
        self._options = options
        self._pattern = _compiled(options.header_forward_pattern)
        self._access = Access(options.restrictions)
        self._portable = options.portable or not native.available
        self._server: grpc.Server | None = None
        self._coroutines: Coroutines | None = None
        self.port = options.port
        """The port it listens on; known after `start` if 0 was asked for."""

    async def start(self) -> None:
        """Listen. Raises InvalidArgument for options that cannot be, Unavailable if the address cannot be had."""
        self._coroutines = Coroutines()
        carrier = portable if self._portable else native
        methods = {name: carrier.method(handler) for name, handler in self._methods(self._coroutines).items()}
        server = grpc.server(
            futures.ThreadPoolExecutor(portable.MAX_CALLS if self._portable else 1, "moorage-grpc"),
            handlers=[MethodTable(methods)],
            options=channel_options(self._options),
        )
        self.port = self._listen(server)
        server.start()
        self._server = server

    async def stop(self, grace: float) -> None:
        """Take no more calls; cancel those that still run after `grace` seconds. Returns when all have ended."""
        server, self._server = self._server, None
        if server is not None:
            await asyncio.to_thread(server.stop(grace).wait)
        if self._coroutines is not None:
            self._coroutines.cancel()

    def _listen(self, server: grpc.Server) -> int:
        address = listening_address(self._options)
        tls = self._options.tls
        try:
            return server.add_insecure_port(address) if tls is None else server.add_secure_port(address, credentials(tls))
        except RuntimeError as error:
            raise Unavailable(f"gRPC cannot listen on {address} ({error}); choose another port with --grpc-port") from error

    def _methods(self, coroutines: Coroutines) -> Methods:
        services = (proto.SERVICE, health.SERVICE, *reflection.SERVICES)
        methods = _in_service(proto.SERVICE, self._inference_methods(coroutines))
        methods |= _in_service(health.SERVICE, Health(self._admin, services, coroutines).handlers())
        guarded = {name: self._guarded(name.rpartition("/")[2], handler) for name, handler in methods.items()}
        for service in reflection.SERVICES:
            guarded |= _in_service(service, {"ServerReflectionInfo": Reflection(services)})
        return guarded

    def _inference_methods(self, coroutines: Coroutines) -> Methods:
        methods: Methods = {
            "ModelInfer": UnaryInference(self._inference, self._pattern),
            "ModelStreamInfer": StreamInference(self._inference, self._pattern),
        }
        described = proto.service().methods_by_name
        for name, answer in AdminCalls(self._admin).answers().items():
            methods[name] = coroutines.handler(proto.message_class(described[name].input_type.name), answer)
        return methods

    def _guarded(self, method: str, handler: Handler) -> Handler:
        """The handler, behind the restriction of its group if there is one."""
        if not self._access.restricts(method):
            return handler

        def guarded(call: Call) -> None:
            refusal = self._access.refusal(method, call.metadata)
            if refusal:
                call.finish(grpc.StatusCode.UNAVAILABLE, refusal)
            else:
                handler(call)

        return guarded


def _in_service(service: str, methods: Mapping[str, Handler]) -> Methods:
    return {f"/{service}/{name}": handler for name, handler in methods.items()}


def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, re.IGNORECASE) if pattern else None
    except re.error as error:
        raise InvalidArgument(f"--grpc-header-forward-pattern '{pattern}' is no regular expression: {error}") from error
