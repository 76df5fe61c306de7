"""The responses of a model that gives any number of them, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from moorage.errors import MoorageError
from moorage.server.results import InferResult, result_of
from moorage.server.waiting import overdue
from moorage.types import InferRequest, InferResponse

Item = InferResponse | MoorageError | None
"""A response, the error that ended the request, or None for its end."""


class Inbox:
    """The sink of a streamed request. It knows nothing of the stream, so that a stream that nobody reads can go."""

    __slots__ = ("_put",)

    def __init__(self, put: Callable[[Item], None]) -> None:
        self._put = put

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._put(response)
        if final:
            self._put(None)

    def fail(self, error: MoorageError) -> None:
        self._put(error)
        self._put(None)

    def complete(self) -> None:
        self._put(None)


class _Responses:
    """What both kinds of stream are."""

    def __init__(self, request: InferRequest, timeout: float | None) -> None:
        self._request = request
        self._timeout = timeout
        self._over = False

    def cancel(self) -> None:
        """Tell the model that nobody waits for more. It may or may not heed it; what comes can still be read."""
        self._request.cancelled = True

    def _given_up(self) -> MoorageError:
        self._over = True
        self.cancel()
        return overdue(self._request, self._timeout)

    def __del__(self) -> None:
        if not self._over:
            self.cancel()


class Stream(_Responses):
    """The responses to one request, as they come: iterate over it.

    A response that is an error is raised; the stream can be read on after it. Leaving a `with` block, or dropping the stream,
    cancels the request if it still runs.
    """

    def __init__(self, request: InferRequest, timeout: float | None) -> None:
        super().__init__(request, timeout)
        self._items: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def inbox(self) -> Inbox:
        """Where the responses go."""
        return Inbox(self._items.put)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> InferResult:
        if self._over:
            raise StopIteration
        try:
            item = self._items.get(timeout=self._timeout)
        except queue.Empty:
            raise self._given_up() from None
        if item is None:
            self._over = True
            raise StopIteration
        return result_of(item, self._request)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.cancel()


class _Arrivals:
    """A queue from any thread to an event loop, which is woken once for all that has come."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[Item] = deque()
        self._there = asyncio.Event()
        self._woken = False

    def put(self, item: Item) -> None:
        self._items.append(item)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._wake)

    async def get(self) -> Item:
        while not self._items:
            self._there.clear()
            await self._there.wait()
        return self._items.popleft()

    def _wake(self) -> None:
        self._woken = False
        self._there.set()


class AsyncStream(_Responses):
    """The responses to one request, as they come: `async for` over it. Otherwise as `Stream`.

    Cancelling the task that waits for a response cancels the request.
    """

    def __init__(self, request: InferRequest, timeout: float | None) -> None:
        super().__init__(request, timeout)
        self._arrivals = _Arrivals()

    def inbox(self) -> Inbox:
        """Where the responses go."""
        return Inbox(self._arrivals.put)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> InferResult:
        if self._over:
            raise StopAsyncIteration
        try:
            async with asyncio.timeout(self._timeout):
                item = await self._arrivals.get()
        except TimeoutError:
            raise self._given_up() from None
        except asyncio.CancelledError:
            self.cancel()
            raise
        if item is None:
            self._over = True
            raise StopAsyncIteration
        return result_of(item, self._request)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()
