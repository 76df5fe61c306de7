"""One server without its protocols and its process: what `moorage serve` and the in-process API have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from moorage._admin import AdminService
from moorage._admin.service import LogControl
from moorage._app import wiring
from moorage._app.options import ServerOptions
from moorage._control import ModelControl
from moorage._execution import Loader, Servable
from moorage._inference import InferenceService
from moorage._lifecycle.manager import Manager
from moorage._lifecycle.serving import ServingMap
from moorage._logging import get_logger
from moorage._plugins import Registry
from moorage._storage import Reporter
from moorage.control import Outcome, Summoning
from moorage.errors import Internal, InvalidArgument
from moorage.hookspecs import StateChange

log = get_logger("moorage")

GRACE_SECONDS = 1.0
"""How long connections may finish when everything else has ended."""


class Listener(Protocol):
    """A server of some protocol."""

    async def start(self) -> None: ...

    async def stop(self, grace: float) -> None: ...


class Parts:
    """What can be made, and checked, of options before there is an event loop."""

    def __init__(self, options: ServerOptions, reporter: Reporter | None = None) -> None:
        """`reporter` tells of downloads, else the log does. Raises a MoorageError that names the flag which is wrong."""
        self.options = options
        self.registry = wiring.load_plugins(options.block_plugin)
        self.mode = self.registry.control_mode(options.model_control_mode)
        if options.load_model and options.model_control_mode in {"none", "poll"}:
            raise InvalidArgument("--load-model needs --model-control-mode=explicit; other modes choose the models themselves")
        settings = wiring.load_settings(options)
        self.copies = wiring.copies(options, self.registry, reporter)
        self.repositories = wiring.repositories(options, self.registry, self.copies)
        self.serving: ServingMap[Servable] = ServingMap()
        self.loader = Loader(self.registry, settings, self.serving, self.copies)

    def close(self) -> None:
        """Remove what lies on this machine, and leave the repositories alone. Blocks."""
        self.copies.close()
        self.repositories.close()


class Engine:
    """The rooms of one server, put together in the running event loop, which all its coroutines are for.

    Its life: `start`, `listen` and `watch`, `drain`, `stop`. After a `start` that failed, `drain` and `stop` are due, too.
    """

    def __init__(self, parts: Parts, log_control: LogControl) -> None:
        self._parts = parts
        serving = parts.serving
        self._manager = self._make_manager(serving)
        self._control = ModelControl(parts.repositories, self._manager, serving, wiring.control_settings(parts.options))
        self._mode = parts.mode(self._control)
        summon = self._mode.summon if isinstance(self._mode, Summoning) else None
        self.inference = InferenceService(serving, asyncio.get_running_loop(), summon)
        self.admin = AdminService(
            serving=serving,
            manager=self._manager,
            control=self._control,
            mode=self._mode,
            log=log_control,
            settings=wiring.admin_settings(parts.options),
        )
        self._listeners: list[Listener] = []
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Load the initial models. Raises Internal if one failed and the server is to end on errors."""
        _report_plugins(self._parts.registry)
        outcomes = await self._mode.start()
        self._judge(outcomes)
        self.admin.open(outcome.id for outcome in outcomes)

    async def listen(self, listener: Listener) -> None:
        """Start a protocol; it is stopped with the engine."""
        await listener.start()
        self._listeners.append(listener)

    def watch(self) -> None:
        """From now on the control mode sees changes of the repositories, if it looks for them."""
        self._watching = asyncio.create_task(self._mode.run())

    async def drain(self, patience: float, grace: float = 0) -> bool:
        """Refuse new requests, let running ones finish, unload everything. False if requests still run after `patience`.

        For `grace` seconds before, the server is not ready any more and goes on serving.
        """
        self.admin.shut()
        await asyncio.sleep(grace)
        self.inference.refuse("the server is shutting down")
        self._parts.copies.stop()
        if await self._manager.close(patience):
            await asyncio.to_thread(self._parts.loader.close)
            return True
        return False

    async def stop(self) -> None:
        """End the protocols, and give up what is left."""
        if self._watching is not None:
            self._watching.cancel()
        for listener in self._listeners:
            await listener.stop(GRACE_SECONDS)
        self._parts.copies.stop()
        await self._manager.close(0)
        self._control.close()
        await asyncio.to_thread(self._parts.close)

    def _make_manager(self, serving: ServingMap[Servable]) -> Manager[Servable]:
        options = self._parts.options
        return Manager(
            self._parts.loader,
            renewer=self._parts.loader,
            serving=serving,
            load_threads=options.model_load_thread_count,
            retries=options.model_load_retry_count,
            on_change=self._announce,
        )

    def _announce(self, change: StateChange) -> None:
        report = log.error if change.state == "UNAVAILABLE" and change.reason != "unloaded" else log.info
        reason = {"reason": change.reason} if change.reason else {}
        report("model", model=str(change.model), version=change.version, state=change.state, **reason)
        for _, observe in self._parts.registry.observers:
            observe(change)

    def _judge(self, outcomes: Sequence[Outcome]) -> None:
        failed = [(outcome.id, outcome.error) for outcome in outcomes if outcome.error is not None]
        for model, error in failed:
            if self._manager.failure(model) is None:  # what failed as a model is in the log already
                log.error("model failed to load", model=str(model), error=error.message)
        if failed and self._parts.options.exit_on_error:
            reasons = "".join(f"\n  {model}: {error.message}" for model, error in failed)
            raise Internal(
                f"not started, since models failed to load; --exit-on-error=false starts without them. These failed:{reasons}"
            )


def _report_plugins(registry: Registry) -> None:
    for plugin in registry.plugins:
        if plugin.error:
            log.warning("plugin has a problem", plugin=plugin.name, distribution=plugin.distribution, error=plugin.error)
