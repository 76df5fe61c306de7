"""An event loop on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final, TypeVar

from moorage._app.loops import loop_factory
from moorage.errors import Unavailable

R = TypeVar("R")

CLOSED: Final = "the server is closed"


class Background:
    """Runs coroutines for threads that wait for them. Its thread keeps no process alive."""

    def __init__(self, name: str) -> None:
        self._loop: Future[asyncio.AbstractEventLoop] = Future()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)
        self._thread.start()

    def call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine and wait for it. Raises what it raises, and Unavailable if the loop ends before."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("called from the server's own event loop, which must not wait for itself")
        try:
            return self.begin(coroutine).result()
        except CancelledError as error:
            raise Unavailable(CLOSED) from error

    def begin(self, coroutine: Coroutine[Any, Any, R]) -> Future[R]:
        """Start a coroutine. Raises Unavailable if the loop has ended."""
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop.result())
        except RuntimeError as error:
            coroutine.close()
            raise Unavailable(CLOSED) from error

    def end(self, *, wait: bool = True) -> None:
        """End the loop and its thread."""
        self._loop.result().call_soon_threadsafe(self._stop.set)
        if wait:
            self._thread.join()

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        self._loop.set_result(asyncio.get_running_loop())
        await self._stop.wait()
