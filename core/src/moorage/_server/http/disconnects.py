"""Telling requests that their client has gone."""

from __future__ import annotations

import asyncio

from attrs import define

from moorage._server.http.asgi import Receive
from moorage.types import InferRequest

_LOOK_EVERY_SECONDS = 0.05


@define(eq=False, slots=True)
class Watched:
    """A request that runs, and how its connection is heard."""

    request: InferRequest
    receive: Receive
    seen_before: bool = False
    task: asyncio.Task[None] | None = None


class DisconnectWatch:
    """Marks requests as cancelled when their client goes away.

    Most requests are over before it is worth looking: one timer for all begins to listen to the connections of those that it
    finds a second time.
    """

    def __init__(self) -> None:
        self._running: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, request: InferRequest, receive: Receive) -> Watched:
        """A request, whose body has been read, begins to run."""
        watched = Watched(request, receive)
        self._running.add(watched)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_SECONDS, self._look)
        return watched

    def remove(self, watched: Watched) -> None:
        """The request is over."""
        self._running.discard(watched)
        if watched.task is not None:
            watched.task.cancel()

    def _look(self) -> None:
        self._timer = None
        for watched in self._running:
            if not watched.seen_before:
                watched.seen_before = True
            elif watched.task is None:
                watched.task = asyncio.ensure_future(_listen(watched))
        if self._running:
            self._timer = asyncio.get_running_loop().call_later(_LOOK_EVERY_SECONDS, self._look)


async def _listen(watched: Watched) -> None:
    while (await watched.receive())["type"] != "http.disconnect":
        pass
    watched.request.cancelled = True
