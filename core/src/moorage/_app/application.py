"""A server from its start to its end, as a process runs it."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

import structlog

from moorage import __version__
from moorage._admin import AdminService, AdminSettings, IndexEntry
from moorage._app import wiring
from moorage._app.options import ServerOptions
from moorage._control import ModelControl
from moorage._execution import Loader, Servable
from moorage._inference import InferenceService
from moorage._lifecycle.manager import Manager
from moorage._lifecycle.serving import ServingMap
from moorage._logging import Log
from moorage._plugins import Registry
from moorage._server.grpc import GrpcServer
from moorage._server.http import HttpServer, build_app
from moorage._server.metrics import metrics_app
from moorage.control import Outcome
from moorage.errors import Internal, InvalidArgument
from moorage.hookspecs import StateChange

OnStarted = Callable[[Sequence[IndexEntry]], None]

log = structlog.get_logger("moorage")


class Application:
    """One server. Options are checked when it is made; `run` blocks until the server has ended."""

    def __init__(self, options: ServerOptions) -> None:
        """Raises a MoorageError that names the flag which is wrong."""
        self._options = options
        self._log = Log(wiring.log_settings(options))
        self._registry = wiring.load_plugins(options.block_plugin)
        self._mode = self._registry.control_mode(options.model_control_mode)
        if options.load_model and options.model_control_mode != "explicit":
            raise InvalidArgument("--load-model needs --model-control-mode=explicit; other modes choose the models themselves")
        self._repositories = wiring.repositories(options, self._registry)
        self._loader = Loader(self._registry, wiring.load_settings(options))
        self._http_options = wiring.http_options(options)
        self._metrics_options = wiring.metrics_options(options)
        self._grpc_options = wiring.grpc_options(options)

    def run(self, on_started: OnStarted) -> int:
        """Serve until SIGTERM or SIGINT; the exit code.

        Calls `on_started` with the index when all initial models have been tried.
        """
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(self._run(on_started))

    async def _run(self, on_started: OnStarted) -> int:
        stop = _stop_signals()
        log.info("starting", version=__version__, pid=os.getpid(), control_mode=self._options.model_control_mode)
        _report_plugins(self._registry)
        serving: ServingMap[Servable] = ServingMap()
        manager = self._manager(serving)
        control = ModelControl(self._repositories, manager, wiring.control_settings(self._options))
        mode = self._mode(control)
        inference = InferenceService(serving, asyncio.get_running_loop())
        admin = AdminService(
            serving=serving,
            manager=manager,
            control=control,
            mode=mode,
            log=self._log,
            settings=AdminSettings(self._options.id, self._options.strict_readiness),
        )
        servers: list[HttpServer | GrpcServer] = []
        watching: asyncio.Task[None] | None = None
        try:
            self._judge(await mode.start())
            admin.open()
            for server in self._servers(inference, admin):
                await server.start()
                servers.append(server)
            on_started(await admin.index())
            watching = asyncio.create_task(mode.run())
            await stop.wait()
            return await self._end(admin, inference, manager)
        finally:
            if watching is not None:
                watching.cancel()
            for server in servers:
                await server.stop(1.0)
            await manager.close(0)
            control.close()
            log.info("ended")

    async def _end(self, admin: AdminService, inference: InferenceService, manager: Manager[Servable]) -> int:
        """Refuse new requests, let running ones finish, unload everything."""
        patience = self._options.exit_timeout_secs
        log.info("ending", exit_timeout_secs=patience)
        admin.shut()
        inference.refuse("the server is shutting down")
        if await manager.close(patience):
            await asyncio.to_thread(self._loader.close)
            return 0
        log.error("requests were still running at the end of --exit-timeout-secs", exit_timeout_secs=patience)
        return 1

    def _manager(self, serving: ServingMap[Servable]) -> Manager[Servable]:
        return Manager(
            self._loader,
            serving=serving,
            load_threads=self._options.model_load_thread_count,
            retries=self._options.model_load_retry_count,
            on_change=self._announce,
        )

    def _announce(self, change: StateChange) -> None:
        report = log.error if change.state == "UNAVAILABLE" and change.reason != "unloaded" else log.info
        reason = {"reason": change.reason} if change.reason else {}
        report("model", model=str(change.model), version=change.version, state=change.state, **reason)
        for _, observe in self._registry.observers:
            observe(change)

    def _judge(self, outcomes: Sequence[Outcome]) -> None:
        """Raises Internal if a model failed and the server is to end on errors."""
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        for outcome in failed:
            log.error("model failed to load", model=str(outcome.id), error=outcome.error.message if outcome.error else "")
        if failed and self._options.exit_on_error:
            names = ", ".join(str(outcome.id) for outcome in failed)
            raise Internal(
                f"not started, since these models failed to load: {names}; --exit-on-error=false starts without them"
            )

    def _servers(self, inference: InferenceService, admin: AdminService) -> list[HttpServer | GrpcServer]:
        made: list[HttpServer | GrpcServer] = []
        if self._options.allow_http or self._options.allow_metrics:
            app = build_app(inference, admin, self._http_options) if self._options.allow_http else None
            made.append(HttpServer(app, self._http_options, metrics=metrics_app(admin, self._metrics_options)))
        if self._options.allow_grpc:
            made.append(GrpcServer(inference, admin, self._grpc_options))
        return made


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop where it can be had: it takes a third less of the processor for a small request."""
    try:
        import uvloop  # noqa: PLC0415 (not to be had on Windows)
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def _stop_signals() -> asyncio.Event:
    """An event that SIGTERM and SIGINT set. A second signal ends the process at once."""
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            os._exit(1)
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, on_signal)
        except NotImplementedError:  # Windows has no signal handlers on event loops
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(on_signal))
    return stop


def _report_plugins(registry: Registry) -> None:
    for plugin in registry.plugins:
        if plugin.error:
            log.warning("plugin has a problem", plugin=plugin.name, distribution=plugin.distribution, error=plugin.error)
