"""Serving the HTTP application in the running event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn

from moorage._server.http.app import Dispatcher
from moorage._server.http.asgi import ASGIApp
from moorage._server.http.lane import Heads
from moorage._server.http.limits import LimitedProtocol
from moorage._server.http.listener import listen
from moorage._server.http.options import HttpOptions
from moorage._server.http.protocol import HttpProtocol

_LOOK_EVERY_SECONDS = 0.005


class HttpServer:
    """The HTTP server: a listener for the protocol, and one for metrics.

    Each is left out when its application is None; the one for metrics also when the options have no port for it.
    """

    def __init__(self, app: ASGIApp | None, options: HttpOptions, metrics: ASGIApp | None = None) -> None:
        self._main = app and _Listener(app, options.address, options.port, options)
        self._metrics = metrics and _metrics_listener(metrics, options)
        self._listeners = [listener for listener in (self._main, self._metrics) if listener is not None]

    @property
    def port(self) -> int | None:
        """The port of the protocol, also when 0 was asked for."""
        return self._main.port if self._main else None

    @property
    def metrics_port(self) -> int | None:
        """The port of the metrics, also when 0 was asked for."""
        return self._metrics.port if self._metrics else None

    async def start(self) -> None:
        """Listen. Returns when connections are taken; raises Unavailable if an address cannot be had."""
        started: list[_Listener] = []
        try:
            for listener in self._listeners:
                await listener.start()
                started.append(listener)
        except BaseException:
            for listener in started:
                await listener.stop(0)
            raise

    async def stop(self, grace: float) -> None:
        """Take no more connections, let running requests finish for up to `grace` seconds, then end them."""
        await asyncio.gather(*(listener.stop(grace) for listener in self._listeners))


class _QuietServer(uvicorn.Server):
    """uvicorn in a loop that is not its own: signals are the application's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Listener:
    def __init__(self, app: ASGIApp, address: str, port: int, options: HttpOptions) -> None:
        self.port = port
        self._address = address
        self._reuse_port = options.reuse_port
        self._server = _QuietServer(_config(app, options))
        self._task: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None

    async def start(self) -> None:
        self._socket = listen(self._address, self.port, reuse_port=self._reuse_port)
        self.port = self._socket.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not self._server.started:
            if self._task.done():
                await self._task
                raise RuntimeError("uvicorn ended while it started")
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    async def stop(self, grace: float) -> None:
        if self._task is None:
            return
        # uvicorn takes whole seconds; what is left after `grace` is ended by force.
        self._server.config.timeout_graceful_shutdown = max(1, round(grace)) if grace > 0 else 0
        self._server.should_exit = True
        await self._task
        self._task = None
        for connection in list(self._server.server_state.connections):
            if isinstance(connection, HttpProtocol):
                connection.drop()
        if self._socket is not None:
            self._socket.close()


def _metrics_listener(app: ASGIApp, options: HttpOptions) -> _Listener | None:
    if options.metrics_port is None:
        return None
    return _Listener(app, options.metrics_address or options.address, options.metrics_port, options)


def _config(app: ASGIApp, options: HttpOptions) -> uvicorn.Config:
    lane = app.lane if isinstance(app, Dispatcher) else None
    settings: dict[str, Any] = {
        "http": partial(LimitedProtocol, lane=lane, heads=Heads()),
        "ws": "none",
        "lifespan": "off",
        "loop": "none",
        "interface": "asgi3",
        "log_config": None,
        "access_log": False,
        "proxy_headers": False,
        "server_header": False,
        "date_header": True,
        "timeout_keep_alive": options.keep_alive_seconds,
        "backlog": 2048,
    }
    return uvicorn.Config(app, **settings)
