"""The way of a request from a protocol to a model."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial

from moorage._execution import Servable
from moorage._inference import journal
from moorage._inference.answer import Answer, Answered, Mailbox, OneResponse, resolving
from moorage._lifecycle.serving import Handle, ServingMap
from moorage.errors import Cancelled, Internal, MoorageError, NotFound, Unavailable, Unsupported, described
from moorage.types import InferRequest, InferResponse, Sink


class InferenceService:
    """Finds the model of a request, checks the request against it, and has it run."""

    def __init__(
        self,
        serving: ServingMap[Servable],
        loop: asyncio.AbstractEventLoop,
        summon: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`summon`, if there is one, is asked to load a model that does not serve before a request for it is refused."""
        self._serving = serving
        self._summon = summon
        self._waiting: set[asyncio.Task[None]] = set()
        self._loop = loop
        self._mailbox = Mailbox(loop)
        self._refusal: str = ""

    def refuse(self, reason: str) -> None:
        """From now on every new request is refused with this reason, and those whose model is not loaded yet; others go on.

        Called on the service's event loop.
        """
        self._refusal = reason
        for task in self._waiting:
            task.cancel()

    def submit(self, request: InferRequest, sink: Sink, *, unary: bool = False) -> None:
        """Run a request; its responses go to `sink`. Any thread. `unary` says that the protocol can carry one response only.

        Raises a MoorageError at once if the request is refused (the sink is then never called); what fails later goes to the
        sink.
        """
        try:
            self._take(request, sink, unary)
        except MoorageError as error:
            journal.refused(request, error)
            raise

    def _take(self, request: InferRequest, sink: Sink, unary: bool) -> None:
        if self._refusal:
            raise Unavailable(self._refusal)
        try:
            handle = self._serving.acquire(request.model_name, request.model_version)
        except (NotFound, Unavailable):
            if self._summon is None:
                raise
            self._loop.call_soon_threadsafe(self._await, self._summon, request, sink, unary)
            return
        self._run(handle, request, sink, unary)

    def _run(self, handle: Handle[Servable], request: InferRequest, sink: Sink, unary: bool) -> None:
        try:
            if unary and handle.servable.config.decoupled:
                raise Unsupported(f"model '{request.model_name}' is decoupled: use a streaming call (ModelStreamInfer)")
            servable = handle.servable
            servable.submit(request, Answer(handle, request, journal.journaled(sink, request, servable.version)))
        except BaseException:
            handle.release()
            raise

    def _await(self, summon: Callable[[str], Awaitable[None]], request: InferRequest, sink: Sink, unary: bool) -> None:
        task = self._loop.create_task(self._summoned(summon, request, sink, unary))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _summoned(self, summon: Callable[[str], Awaitable[None]], request: InferRequest, sink: Sink, unary: bool) -> None:
        """Run a request when its model has been loaded for it; whatever keeps it from running goes to its sink."""
        try:
            self._run(await self._brought(summon, request), request, sink, unary)
        except MoorageError as error:
            journal.refused(request, error)
            sink.fail(error)
        except asyncio.CancelledError:
            sink.fail(Unavailable(self._refusal))
        except Exception as error:  # noqa: BLE001  the request must be answered
            sink.fail(Internal(f"model '{request.model_name}' could not be loaded: {described(error)}"))

    async def _brought(self, summon: Callable[[str], Awaitable[None]], request: InferRequest) -> Handle[Servable]:
        """The model of a request, loaded for it unless it has come meanwhile."""
        name, version = request.model_name, request.model_version
        with contextlib.suppress(NotFound, Unavailable):
            return self._serving.acquire(name, version)
        if self._refusal:  # since the request was taken
            raise Unavailable(self._refusal)
        await summon(name)  # nothing may be awaited between this and the acquisition: the model could be unloaded again
        if request.cancelled:
            raise Cancelled("the request was cancelled while its model was loaded")
        return self._serving.acquire(name, version)

    def start(self, request: InferRequest, answered: Answered) -> None:
        """Run a request that has one response; `answered` is called later, on the service's event loop, which calls this.

        Raises a MoorageError at once if the request is refused (`answered` is then never called).
        """
        self.submit(request, OneResponse(partial(self._mailbox.post, answered), request.model_name), unary=True)

    async def infer(self, request: InferRequest) -> InferResponse:
        """Run a request that has one response. Called on the service's event loop.

        Raises a MoorageError if the request is refused or fails. When the waiting task is cancelled the request is marked as
        cancelled.
        """
        future: asyncio.Future[InferResponse] = self._loop.create_future()
        self.start(request, resolving(future))
        try:
            return await future
        except asyncio.CancelledError:
            request.cancelled = True
            raise
