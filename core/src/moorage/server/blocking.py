"""The server for ordinary code."""

from __future__ import annotations

import warnings
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from moorage._admin import IndexEntry, Reloaded
from moorage._app.engine import Engine
from moorage._app.options import ServerOptions
from moorage._inference import OneResponse
from moorage.errors import Unavailable
from moorage.server.aio import AsyncServer
from moorage.server.background import CLOSED, Background
from moorage.server.questions import Config, Questions
from moorage.server.requests import Inputs, RequestOptions, build
from moorage.server.results import InferResult
from moorage.server.streams import Stream
from moorage.server.waiting import PendingResult, submit, wait

R = TypeVar("R")


class Server(Questions):
    """A server that may be called from any thread. What must go on in the background runs on a thread of its own.

    with moorage.Server(model_repository="models") as server:
        result = server.infer("add_sub", {"INPUT0": a, "INPUT1": b})
    """

    def __init__(self, options: ServerOptions | None = None, **changes: Any) -> None:
        """`changes` are the flags of `moorage serve` as keyword arguments: `model_repository="models"`, `log_verbose=1`.

        Raises a MoorageError that names the option which is wrong.
        """
        self._background: Background | None = None
        self._inner = AsyncServer(options, **changes)
        self.options = self._inner.options

    def start(self) -> Self:
        """Load the initial models. Raises Internal if one failed and `exit_on_error` is on, after cleaning up."""
        if self._background is not None or self._inner.live():
            raise Unavailable("a server can be started once; make a new one")
        self._background = Background("moorage-server")
        try:
            self._call(self._inner.start())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> bool:
        """Refuse new requests, let running ones finish, unload everything, end the protocols and the background.

        False if requests were still running after `exit_timeout_secs`.
        """
        background, self._background = self._background, None
        if background is None:
            return True
        try:
            return background.call(self._inner.close())
        finally:
            background.end()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        background = getattr(self, "_background", None)
        if background is not None:
            warnings.warn("a moorage.Server was not closed", ResourceWarning, source=self, stacklevel=2)
            background.begin(self._inner.close()).add_done_callback(lambda _: background.end(wait=False))

    def infer(self, name: str, inputs: Inputs, **options: Unpack[RequestOptions]) -> InferResult:
        """Ask a model, and wait for its answer. `inputs` are numpy arrays by name, not to be changed meanwhile.

        Raises what kept the model from answering, and DeadlineExceeded if it takes longer than `timeout` seconds.
        """
        return wait(self._running().inference, build(name, inputs, **options), options.get("timeout"))

    def submit(self, name: str, inputs: Inputs, **options: Unpack[RequestOptions]) -> Future[InferResult]:
        """Ask a model without waiting. Its answer comes in the future, whose `cancel` gives the request up.

        `timeout` is for the scheduler only: the future's `result` has its own.
        """
        request = build(name, inputs, **options)
        pending = PendingResult(request)
        submit(self._running().inference, request, OneResponse(pending.answered, name), unary=True)
        return pending

    def stream(self, name: str, inputs: Inputs, **options: Unpack[RequestOptions]) -> Stream:
        """Ask a model that gives any number of responses: iterate over what this returns."""
        request = build(name, inputs, **options)
        stream = Stream(request, options.get("timeout"))
        submit(self._running().inference, request, stream.inbox(), unary=False)
        return stream

    def load(
        self,
        name: str,
        config: Config | None = None,
        files: Mapping[str, bytes] | None = None,
        *,
        force: bool = False,
        versions: Iterable[int] = (),
    ) -> None:
        """Load a model, or load it again; returns when it serves. What served before serves on until then.

        `config` replaces the model's configuration, `files` maps "VERSION/PATH" to contents that replace its folder, `force`
        loads even if nothing has changed, `versions` are loaded beside those that serve. Raises what kept it from loading, and
        Unavailable where the control mode does not leave this to callers.
        """
        self._call(self._inner.load(name, config, files, force=force, versions=versions))

    def reload(self) -> list[Reloaded]:
        """Load what has changed of all that is loaded; what became of each model. One that fails serves on as it was."""
        return self._call(self._inner.reload())

    def unload(self, name: str, *, dependents: bool = False, versions: Iterable[int] = ()) -> None:
        """Unload a model, or only these versions of it; returns when its requests are done.

        `dependents` unloads what only it uses, too.
        """
        self._call(self._inner.unload(name, dependents=dependents, versions=versions))

    def index(self, *, ready: bool = False) -> list[IndexEntry]:
        """What the repositories hold and what became of it; `ready` keeps what serves."""
        return self._call(self._inner.index(ready=ready))

    def live(self) -> bool:
        """Whether the server has been started and not been closed."""
        return self._inner.live()

    def ready(self, name: str | None = None, version: int | str | None = None) -> bool:
        """Whether the server, or a model, is ready for requests."""

        async def ask() -> bool:
            return self._inner.ready(name, version)

        try:
            return self._call(ask())
        except Unavailable:
            return False

    def serve_http(self, port: int | None = None, address: str | None = None) -> int:
        """Serve HTTP, too, until the server is closed; the port. None takes the option's, 0 any free one.

        Raises Unavailable if the address cannot be had.
        """
        return self._call(self._inner.serve_http(port, address))

    def serve_grpc(self, port: int | None = None, address: str | None = None) -> int:
        """Serve gRPC, too. As `serve_http`."""
        return self._call(self._inner.serve_grpc(port, address))

    def serve_metrics(self, port: int | None = None, address: str | None = None) -> int:
        """Serve Prometheus metrics at /metrics. As `serve_http`."""
        return self._call(self._inner.serve_metrics(port, address))

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        background = self._background
        if background is None:
            coroutine.close()
            self._running()
            raise Unavailable(CLOSED)
        return background.call(coroutine)

    def _running(self) -> Engine:
        return self._inner._running()
