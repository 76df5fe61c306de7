"""The way of a request from a protocol to a model."""

from __future__ import annotations

import asyncio
from functools import partial

from moorage._execution import Servable
from moorage._inference import journal
from moorage._inference.answer import Answer, Answered, Mailbox, OneResponse, resolving
from moorage._lifecycle.serving import ServingMap
from moorage.errors import MoorageError, Unavailable, Unsupported
from moorage.types import LATEST, InferRequest, InferResponse, Sink


class InferenceService:
    """Finds the model of a request, checks the request against it, and has it run."""

    def __init__(self, serving: ServingMap[Servable], loop: asyncio.AbstractEventLoop) -> None:
        self._serving = serving
        self._loop = loop
        self._mailbox = Mailbox(loop)
        self._refusal: str = ""

    def refuse(self, reason: str) -> None:
        """From now on every new request is refused with this reason; running ones go on."""
        self._refusal = reason

    def model(self, name: str, version: int = LATEST) -> Servable:
        """The version that serves now. Raises NotFound, Unavailable, or RequestError if the name is ambiguous."""
        return self._serving.get(name, version)

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
        handle = self._serving.acquire(request.model_name, request.model_version)
        try:
            if unary and handle.servable.config.decoupled:
                raise Unsupported(f"model '{request.model_name}' is decoupled: use a streaming call (ModelStreamInfer)")
            servable = handle.servable
            servable.submit(request, Answer(handle, request, journal.journaled(sink, request, servable.version)))
        except BaseException:
            handle.release()
            raise

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
