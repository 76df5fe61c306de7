"""Inference requests, responses, and the sink that carries responses back."""

from __future__ import annotations

import time
from typing import Protocol

from attrs import define, field

from moorage.errors import MoorageError
from moorage.types.tensor import Tensor
from moorage.types.version import LATEST

ParameterValue = str | int | float | bool


@define(eq=False, slots=True)
class RequestedOutput:
    """An output that the client asked for; `classification` > 0 asks for the top classes instead of the tensor."""

    name: str
    classification: int = 0


@define(eq=False, slots=True)
class InferRequest:
    """One inference request, free of any protocol.

    `timeout_us` is in microseconds, 0 for none. `outputs` empty means all outputs. `correlation_id` 0 or "" means no sequence.
    `cancelled` is set by the protocol when the client has gone; executors look at it, none has to.
    """

    model_name: str
    inputs: dict[str, Tensor]
    model_version: int = LATEST
    id: str = ""
    outputs: tuple[RequestedOutput, ...] = ()
    parameters: dict[str, ParameterValue] = field(factory=dict)
    correlation_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    timeout_us: int = 0
    cancelled: bool = False


@define(eq=False, slots=True)
class InferResponse:
    """One response. A decoupled model sends any number of them for a request.

    A model that answers with an error of its own making sets `error` and leaves `outputs` empty. `model_name` and
    `model_version` are filled in by the core with what really answered.
    """

    outputs: list[Tensor]
    parameters: dict[str, ParameterValue] = field(factory=dict)
    error: MoorageError | None = None
    model_name: str = ""
    model_version: int = LATEST


class Sink(Protocol):
    """Where the responses to one request go. Every method may be called from any thread, and returns at once.

    The calls for one request come in order and end with exactly one of: `send(..., final=True)`, `fail`, `complete`.
    """

    def send(self, response: InferResponse, *, final: bool) -> None:
        """Deliver a response; `final` says that no more will come."""

    def fail(self, error: MoorageError) -> None:
        """End the request with an error."""

    def complete(self) -> None:
        """End the request without a further response."""


@define(eq=False, slots=True)
class Job:
    """A request on its way through the executors, with the sink for its answers. Times are `time.monotonic_ns`."""

    request: InferRequest
    sink: Sink
    arrived_ns: int = field(factory=time.monotonic_ns)
    batch_size: int = 1
    """Rows of this request in a batch; 1 for models that do not batch."""
