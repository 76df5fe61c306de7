"""A server from its start to its end, as a process runs it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from moorage import __version__
from moorage._admin import IndexEntry
from moorage._app import wiring
from moorage._app.engine import Engine, Parts
from moorage._app.flags import without_effect
from moorage._app.loops import loop_factory
from moorage._app.options import ServerOptions
from moorage._app.protocols import Protocols
from moorage._logging import Log, get_logger
from moorage._storage import Reporter

OnStarted = Callable[[Sequence[IndexEntry]], None]

SWITCH_SECONDS: Final = 0.0005
"""How long a thread that runs Python code, such as one that loads a model, may keep those of requests waiting."""

log = get_logger("moorage")


class Application:
    """One server that is a process. Options are checked when it is made; `run` blocks until the server has ended."""

    def __init__(self, options: ServerOptions, reporter: Reporter | None = None) -> None:
        """`reporter` tells of downloads, else the log does. Raises a MoorageError that names the flag which is wrong."""
        self._options = options
        self._log = Log(wiring.log_settings(options))
        self._parts = Parts(options, reporter)
        self._protocols = Protocols(options)

    def run(self, on_started: OnStarted) -> int:
        """Serve until SIGTERM or SIGINT; the exit code.

        Calls `on_started` with the index when all initial models have been tried.
        """
        sys.setswitchinterval(SWITCH_SECONDS)
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(self._run(on_started))

    async def _run(self, on_started: OnStarted) -> int:
        stop = _stop_signals()
        log.info("starting", version=__version__, pid=os.getpid(), control_mode=self._options.model_control_mode)
        for flag, reason in without_effect(self._options):
            log.warning("flag without effect", flag=flag, reason=reason)
        engine = Engine(self._parts, self._log)
        try:
            if await _unless(stop, self._start(engine, on_started)):
                engine.watch()
                await stop.wait()
            return await self._end(engine)
        finally:
            await engine.stop()
            log.info("ended")

    async def _start(self, engine: Engine, on_started: OnStarted) -> None:
        await engine.start()
        servers = self._protocols.servers(engine)
        for server in servers:
            await engine.listen(server)
        log.info("listening", **self._protocols.addresses(servers))
        on_started(await engine.admin.index())

    async def _end(self, engine: Engine) -> int:
        patience, grace = self._options.exit_timeout_secs, self._options.shutdown_grace_secs
        log.info("ending", shutdown_grace_secs=grace, exit_timeout_secs=patience)
        if await engine.drain(patience, grace):
            return 0
        log.error("requests were still running at the end of --exit-timeout-secs", exit_timeout_secs=patience)
        return 1


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do the work, but give it up if the event comes first; whether it was done. Raises what the work raises."""
    working, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if working.done():
        working.result()
        return True
    working.cancel()
    await asyncio.wait({working})
    return False


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
