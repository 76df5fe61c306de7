"""One request on its way through an ensemble.

The requests to the steps end on the threads of their models, several at once. What has come and what runs is kept under a
lock; models and sinks are called without it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, evolve, field

from moorage._execution.ensemble.plan import Plan, Slot, Step, joined
from moorage.errors import Cancelled, ModelError, MoorageError
from moorage.types import InferRequest, InferResponse, RequestedOutput, Sink, Tensor

Call = Callable[[Step, InferRequest, Sink], None]
"""Starts a request to a step's model. Raises a MoorageError if it is refused; its responses come with shapes as clients see."""

_GOAL = -1


@define(eq=False)
class _Place:
    """The tensors that are there, for one chain of responses of decoupled steps. None is an optional input left out."""

    path: tuple[int, ...]
    values: dict[str, Tensor | None]
    started: set[int] = field(factory=set)
    inner: list[_Place] = field(factory=list)

    def put(self, values: Mapping[str, Tensor | None]) -> None:
        self.values.update(values)
        for place in self.inner:
            place.put(values)

    def all(self) -> Iterator[_Place]:
        yield self
        for place in self.inner:
            yield from place.all()


class Flow:
    """Runs the steps whose tensors are there, until the outputs that are asked for have been sent."""

    def __init__(self, plan: Plan, request: InferRequest, sink: Sink, call: Call) -> None:
        self._plan = plan
        self._request = request
        self._sink = sink
        self._call = call
        self._outputs = tuple(output.name for output in request.outputs) or tuple(plan.outputs)
        needed = frozenset[int]().union(*(plan.needed[name] for name in self._outputs))
        self._steps = tuple(step for step in plan.steps if step.index in needed)
        self._goal_path = joined("", (plan.scopes[name] for name in self._outputs))
        self._streams = any(step.decoupled for step in self._steps)
        self._lock = threading.Lock()
        self._running = 0
        self._over = False

    def begin(self, inputs: Mapping[str, Tensor | None]) -> None:
        """Start the steps that need nothing but the inputs. Whatever happens from here on goes to the sink."""
        place = _Place((), dict(inputs))
        with self._lock:
            self._running = 1  # this call itself, so that nothing ends before all have been started
            ready = self._ready(place)
        self._run(ready)
        self._ended()

    def arrived(self, step: Step, place: _Place, response: InferResponse) -> None:
        """A response of a step has come."""
        if response.error is not None:
            self.failed(response.error)
            return
        values = {step.writes[tensor.name]: tensor for tensor in response.outputs if tensor.name in step.writes}
        with self._lock:
            if self._over:
                return
            if step.decoupled:
                inner = _Place((*place.path, step.index), {**place.values, **values})
                place.inner.append(inner)
                place = inner
            else:
                place.put(values)
            ready = self._ready(place)
        self._run(ready)

    def failed(self, error: MoorageError) -> None:
        """A step has failed, and with it the request; what still runs is for nothing."""
        with self._lock:
            over, self._over = self._over, True
        if not over:
            self._sink.fail(error)

    def ended(self) -> None:
        """The request to a step has had its last response."""
        self._ended()

    def _ready(self, root: _Place) -> list[tuple[_Place, Step | None]]:
        """What can begin now: steps, or None for sending the outputs. Called with the lock."""
        found: list[tuple[_Place, Step | None]] = []
        for place in root.all():
            found.extend((place, step) for step in self._steps if self._can_begin(step, place))
            if self._goal_path == place.path and self._takes(place, _GOAL, self._outputs):
                found.append((place, None))
        self._running += len(found)
        return found

    def _can_begin(self, step: Step, place: _Place) -> bool:
        return step.scope == place.path and self._takes(place, step.index, step.reads.values())

    @staticmethod
    def _takes(place: _Place, index: int, tensors: Iterable[str]) -> bool:
        if index in place.started or any(tensor not in place.values for tensor in tensors):
            return False
        place.started.add(index)
        return True

    def _run(self, ready: Iterable[tuple[_Place, Step | None]]) -> None:
        for place, step in ready:
            if step is None:
                self._send(place)
                self._ended()
            elif self._over:
                self._ended()
            else:
                self._start(step, place)

    def _start(self, step: Step, place: _Place) -> None:
        request = self._request
        given = ((name, place.values[tensor]) for name, tensor in step.reads.items())
        inputs = {name: fitted(tensor, name, step.inputs[name]) for name, tensor in given if tensor is not None}
        asked = tuple(RequestedOutput(name) for name in step.writes)
        inner = evolve(request, model_name=step.model, model_version=step.version, inputs=inputs, outputs=asked)
        try:
            if request.cancelled:
                raise Cancelled(f"the request to '{request.model_name}' was cancelled by its client")
            self._call(step, inner, _StepSink(self, step, place))
        except MoorageError as error:
            self.failed(error)
            self._ended()

    def _send(self, place: _Place) -> None:
        given = ((name, place.values[name]) for name in self._outputs)
        outputs = [fitted(tensor, name, self._plan.outputs[name]) for name, tensor in given if tensor is not None]
        with self._lock:
            if self._over:
                return
            self._over = not self._streams
        self._sink.send(InferResponse(outputs), final=not self._streams)

    def _ended(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running or self._over:
                return
            self._over = True
        if self._streams:
            self._sink.complete()
            return
        names = " and ".join(f"'{name}'" for name in self._outputs)
        self._sink.fail(ModelError(f"ensemble '{self._request.model_name}': its steps have ended without values for {names}"))


class _StepSink:
    """Takes the responses to a step's request."""

    __slots__ = ("_flow", "_place", "_step")

    def __init__(self, flow: Flow, step: Step, place: _Place) -> None:
        self._flow = flow
        self._step = step
        self._place = place

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._flow.arrived(self._step, self._place, response)
        if final:
            self._flow.ended()

    def fail(self, error: MoorageError) -> None:
        self._flow.failed(error)
        self._flow.ended()

    def complete(self) -> None:
        self._flow.ended()


def fitted(tensor: Tensor, name: str, slot: Slot) -> Tensor:
    """The tensor under another name, with a batch dimension of 1 added or taken away where the two sides differ in that."""
    array = tensor.array
    if slot.batches and array.ndim == len(slot.dims):
        array = array[None]
    elif not slot.batches and array.ndim == len(slot.dims) + 1 and array.shape[0] == 1:
        array = array[0]
    return Tensor(name, tensor.datatype, array)
