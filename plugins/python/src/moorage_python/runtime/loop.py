"""An event loop on a thread of its own, for models whose `execute` is a coroutine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any


class LoopThread:
    """Started with the first coroutine."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine and return its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._start()).result()

    def start(self, coroutine: Coroutine[Any, Any, Any], failed: Callable[[BaseException], None]) -> None:
        """Run a coroutine in the background; `failed` is called if it raises."""

        def done(future: Future[Any]) -> None:
            error = asyncio.CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                failed(error)

        asyncio.run_coroutine_threadsafe(coroutine, self._start()).add_done_callback(done)

    def close(self) -> None:
        """Cancel what runs and stop the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        self._loop = None

    def _start(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return self._loop


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
