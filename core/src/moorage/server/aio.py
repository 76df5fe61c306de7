"""The server for programs that are written with asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from moorage._admin import IndexEntry, Reloaded
from moorage._app.arguments import options_with
from moorage._app.engine import Engine, Listener, Parts
from moorage._app.options import ServerOptions
from moorage.errors import InvalidArgument, Unavailable
from moorage.server.questions import ApplicationLog, Config, Questions, load_options
from moorage.server.requests import Inputs, RequestOptions, build, version_number
from moorage.server.results import InferResult
from moorage.server.streams import AsyncStream
from moorage.server.waiting import overdue

if TYPE_CHECKING:
    from moorage._app.protocols import Protocols

L = TypeVar("L", bound=Listener)


class AsyncServer(Questions):
    """A server in the event loop of your program. All methods are for that loop; models run on threads of their own.

    async with moorage.AsyncServer(model_repository="models") as server:
        result = await server.infer("add_sub", {"INPUT0": a, "INPUT1": b})
    """

    def __init__(self, options: ServerOptions | None = None, **changes: Any) -> None:
        """`changes` are the flags of `moorage serve` as keyword arguments: `model_repository="models"`, `log_verbose=1`.

        Raises a MoorageError that names the option which is wrong.
        """
        self.options = options_with(options or ServerOptions(), changes)
        if not self.options.model_repository:
            raise InvalidArgument("no model repository; give its folder or URL: model_repository=PATH")
        self._parts = Parts(self.options)
        self._engine: Engine | None = None
        self._closed = False

    async def start(self) -> Self:
        """Load the initial models. Raises Internal if one failed and `exit_on_error` is on, after cleaning up."""
        if self._engine is not None or self._closed:
            raise Unavailable("a server can be started once; make a new one")
        engine = Engine(self._parts, ApplicationLog(self.options))
        self._engine = engine
        try:
            await engine.start()
        except BaseException:
            await self.close()
            raise
        engine.watch()
        return self

    async def close(self) -> bool:
        """Refuse new requests, let running ones finish, unload everything, end the protocols.

        False if requests were still running after `exit_timeout_secs`.
        """
        closed, self._closed = self._closed, True
        if closed or self._engine is None:
            return True
        try:
            return await self._engine.drain(self.options.exit_timeout_secs)
        finally:
            await self._engine.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def infer(self, name: str, inputs: Inputs, **options: Unpack[RequestOptions]) -> InferResult:
        """Ask a model. `inputs` are numpy arrays by name, not to be changed before the result is there.

        Raises what kept the model from answering. Cancelling the task cancels the request.
        """
        request, timeout = build(name, inputs, **options), options.get("timeout")
        answer = self._running().inference.infer(request)
        if timeout is None:
            return InferResult(await answer, request.id)
        try:
            async with asyncio.timeout(timeout):
                return InferResult(await answer, request.id)
        except TimeoutError:
            raise overdue(request, timeout) from None

    def stream(self, name: str, inputs: Inputs, **options: Unpack[RequestOptions]) -> AsyncStream:
        """Ask a model that gives any number of responses: `async for` over what this returns."""
        request = build(name, inputs, **options)
        stream = AsyncStream(request, options.get("timeout"))
        self._running().inference.submit(request, stream.inbox())
        return stream

    async def load(
        self,
        name: str,
        config: Config | None = None,
        files: Mapping[str, bytes] | None = None,
        *,
        force: bool = False,
        versions: Iterable[int] = (),
    ) -> None:
        """Load a model, or load it again; returns when it serves. As `Server.load`."""
        options = load_options(config, files, force=force, versions=versions)
        await self._running().admin.load(name, options, trusted=True)

    async def reload(self) -> list[Reloaded]:
        """Load what has changed of all that is loaded. As `Server.reload`."""
        return await self._running().admin.reload()

    async def unload(self, name: str, *, dependents: bool = False, versions: Iterable[int] = ()) -> None:
        """Unload a model; returns when its requests are done. As `Server.unload`."""
        await self._running().admin.unload(name, dependents=dependents, versions=frozenset(versions))

    async def index(self, *, ready: bool = False) -> list[IndexEntry]:
        """What the repositories hold and what became of it; `ready` keeps what serves."""
        return await self._running().admin.index(ready=ready)

    def live(self) -> bool:
        """Whether the server has been started and not been closed."""
        return self._engine is not None and not self._closed

    def ready(self, name: str | None = None, version: int | str | None = None) -> bool:
        """Whether the server, or a model, is ready for requests."""
        if not self.live():
            return False
        admin = self._running().admin
        return admin.ready() if name is None else admin.model_ready(name, version_number(version))

    async def serve_http(self, port: int | None = None, address: str | None = None) -> int:
        """Serve HTTP, too. As `Server.serve_http`."""
        http = await self._serve(lambda protocols, engine: protocols.http(engine), http_port=port, http_address=address)
        return http.port or 0

    async def serve_grpc(self, port: int | None = None, address: str | None = None) -> int:
        """Serve gRPC, too. As `Server.serve_http`."""
        grpc = await self._serve(lambda protocols, engine: protocols.grpc(engine), grpc_port=port, grpc_address=address)
        return grpc.port

    async def serve_metrics(self, port: int | None = None, address: str | None = None) -> int:
        """Serve Prometheus metrics at /metrics. As `Server.serve_http`."""
        metrics = await self._serve(
            lambda protocols, engine: protocols.metrics(engine), metrics_port=port, metrics_address=address
        )
        return metrics.metrics_port or 0

    async def _serve(self, make: Callable[[Protocols, Engine], L], **changes: Any) -> L:
        engine = self._running()
        listener = await asyncio.to_thread(lambda: make(self._protocols(**changes), engine))  # loading libraries takes its time
        await engine.listen(listener)
        return listener

    def _running(self) -> Engine:
        if self._closed:
            raise Unavailable("the server is closed")
        if self._engine is None:
            raise Unavailable("the server has not been started; use it in a 'with' statement, or call start()")
        return self._engine
