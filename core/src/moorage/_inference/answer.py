"""The sinks between a model and a protocol: each shapes the responses to one request and lets go of the model at the end."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from moorage._execution import Servable
from moorage._inference.classify import classify
from moorage._lifecycle.serving import Handle
from moorage._logging import get_logger
from moorage.errors import Internal, ModelError, MoorageError, told
from moorage.types import InferRequest, InferResponse, Sink, Tensor

log = get_logger("moorage.inference")


class Answer:
    """Passes responses on to a protocol's sink: the outputs asked for, in the shapes and classes asked for."""

    __slots__ = ("_handle", "_request", "_sink")

    def __init__(self, handle: Handle[Servable], request: InferRequest, sink: Sink) -> None:
        self._handle = handle
        self._request = request
        self._sink = sink

    def send(self, response: InferResponse, *, final: bool) -> None:
        try:
            self._shape(response)
        except MoorageError as error:
            self.fail(error)
            return
        except Exception as error:  # noqa: BLE001 the request must be answered whatever the model returned
            self.fail(ModelError(f"model '{self._handle.servable.name}' gave a response that cannot be used: {told(error)}"))
            return
        try:
            self._sink.send(response, final=final)
        except Exception as error:
            log.exception("a response could not be passed on", model=self._handle.servable.name)
            self.fail(ModelError(f"model '{self._handle.servable.name}' gave a response that cannot be sent: {told(error)}"))
            return
        if final:
            self._handle.release()

    def fail(self, error: MoorageError) -> None:
        self._handle.release()
        self._sink.fail(error)

    def complete(self) -> None:
        self._handle.release()
        self._sink.complete()

    def _shape(self, response: InferResponse) -> None:
        servable = self._handle.servable
        response.model_name = servable.name
        response.model_version = servable.version
        if response.error is not None:
            return
        servable.check.restore(response)
        if self._request.outputs:
            response.outputs = self._asked_for(response, servable)

    def _asked_for(self, response: InferResponse, servable: Servable) -> list[Tensor]:
        given = {tensor.name: tensor for tensor in response.outputs}
        outputs = []
        for asked in self._request.outputs:
            tensor = given.get(asked.name)
            if tensor is None:
                continue
            if asked.classification:
                labels = servable.labels.get(asked.name, ())
                tensor = classify(tensor, asked.classification, labels, batched=servable.config.batches)
            outputs.append(tensor)
        return outputs


Answered = Callable[[InferResponse | MoorageError], None]
"""Called with the one response to a request, or with the error that ended it."""


class Mailbox:
    """Brings results from models' threads to an event loop, waking the loop once for all that are waiting."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Answered, InferResponse | MoorageError]] = deque()
        self._woken = False

    def post(self, answered: Answered, result: InferResponse | MoorageError) -> None:
        """Have `answered` called with `result`. Any thread."""
        self._waiting.append((answered, result))
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        waiting = self._waiting
        while waiting:
            answered, result = waiting.popleft()
            try:
                answered(result)
            except Exception:
                log.exception("a response could not be passed on")


def resolving(future: asyncio.Future[InferResponse]) -> Answered:
    """Resolves a future of the loop, unless nobody waits for it any more."""

    def answered(result: InferResponse | MoorageError) -> None:
        if future.done():
            return
        if isinstance(result, InferResponse):
            future.set_result(result)
        else:
            future.set_exception(result)

    return answered


class OneResponse:
    """The sink of a unary call: calls `answered` with the one response, and again only if the model gives several."""

    __slots__ = ("_answered", "_model", "_response")

    def __init__(self, answered: Answered, model: str) -> None:
        self._answered = answered
        self._model = model
        self._response: InferResponse | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        if self._response is not None:
            self._answered(self._several())
        elif final:
            self._settle(response)
        else:
            self._response = response

    def fail(self, error: MoorageError) -> None:
        self._answered(error)

    def complete(self) -> None:
        if self._response is None:
            self._answered(Internal(f"model '{self._model}' ended the request without a response"))
        else:
            self._settle(self._response)

    def _settle(self, response: InferResponse) -> None:
        self._answered(response if response.error is None else response.error)

    def _several(self) -> MoorageError:
        return Internal(f"model '{self._model}' gave several responses to a request that can carry one; use a streaming call")
