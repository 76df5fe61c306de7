"""An ensemble as a version that serves: its requests run on the instances of other models."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from attrs import evolve

from moorage._execution.check import RequestCheck
from moorage._execution.ensemble.flow import Flow
from moorage._execution.ensemble.plan import Plan, Step, compiled
from moorage._execution.servable import Servable
from moorage._execution.statistics import Execution, Recorder, total
from moorage._lifecycle.serving import Handle, ServingMap
from moorage._logging import get_logger
from moorage._repository.spec import VersionSpec
from moorage.config.schema import Ensembling, ModelConfig, TransactionPolicy
from moorage.control import ModelId
from moorage.errors import InvalidArgument, MoorageError
from moorage.types import InferRequest, InferResponse, Sink, Tensor

log = get_logger("moorage.execution")


class Ensemble(Servable):
    """Passes tensors from step to step. It has no instances: everything happens on the threads of its steps' models."""

    def __init__(
        self, config: ModelConfig, version: int, plan: Plan, labels: Mapping[str, Sequence[str]], serving: ServingMap[Servable]
    ) -> None:
        self.name = config.name
        self.version = version
        self.config = config
        self.shown = config
        self.check = RequestCheck(config)
        self.labels = labels
        self.members = ()
        self._plan = plan
        self._serving = serving
        self._inputs = tuple(item.name for item in config.input)
        self._lock = threading.Lock()
        self._recorder = Recorder()
        self.recorders = (self._recorder,)

    def submit(self, request: InferRequest, sink: Sink) -> None:
        rows = self.check.accept(request)
        inputs: dict[str, Tensor | None] = {name: request.inputs.get(name) for name in self._inputs}
        Flow(self._plan, request, _Counted(self, sink, rows), self._call).begin(inputs)

    @property
    def pending(self) -> int:
        """None wait here: they wait for the models of the steps."""
        return 0

    def statistics(self) -> Recorder:
        with self._lock:
            return total((self._recorder,))

    def relieve(self) -> None:
        """There are no instances to take over."""

    def close(self) -> None:
        """There is nothing to give back."""

    def count(self, arrived: int, rows: int, *, well: bool) -> None:
        """A request has ended. Any thread."""
        times = Execution(arrived, arrived, ended := time.monotonic_ns(), ended)
        with self._lock:
            self._recorder.executed(times, rows)
            if well:
                self._recorder.succeeded(times, arrived, rows)
            else:
                self._recorder.failed(times, arrived)

    def _call(self, step: Step, request: InferRequest, sink: Sink) -> None:
        handle = self._serving.acquire(step.model, step.version)
        try:
            handle.servable.submit(request, _Part(handle, sink))
        except BaseException:
            handle.release()
            raise


class _Part:
    """The sink of a request to a step's model: gives the outputs the shapes that clients see, and lets go of the model."""

    __slots__ = ("_handle", "_sink")

    def __init__(self, handle: Handle[Servable], sink: Sink) -> None:
        self._handle = handle
        self._sink = sink

    def send(self, response: InferResponse, *, final: bool) -> None:
        if response.error is None:
            self._handle.servable.check.restore(response)
        if final:
            self._handle.release()
        self._sink.send(response, final=final)

    def fail(self, error: MoorageError) -> None:
        self._handle.release()
        self._sink.fail(error)

    def complete(self) -> None:
        self._handle.release()
        self._sink.complete()


class _Counted:
    """Counts how a request to the ensemble ended."""

    __slots__ = ("_arrived", "_ensemble", "_rows", "_sink")

    def __init__(self, ensemble: Ensemble, sink: Sink, rows: int) -> None:
        self._ensemble = ensemble
        self._sink = sink
        self._rows = rows
        self._arrived = time.monotonic_ns()

    def send(self, response: InferResponse, *, final: bool) -> None:
        if final:
            self._ensemble.count(self._arrived, self._rows, well=True)
        self._sink.send(response, final=final)

    def fail(self, error: MoorageError) -> None:
        self._ensemble.count(self._arrived, self._rows, well=False)
        self._sink.fail(error)

    def complete(self) -> None:
        self._ensemble.count(self._arrived, self._rows, well=True)
        self._sink.complete()


def load_ensemble(
    config: ModelConfig, spec: VersionSpec, labels: Mapping[str, Sequence[str]], serving: ServingMap[Servable]
) -> Ensemble:
    """The ensemble, its steps checked against the models that serve now. Raises InvalidArgument if they do not fit together."""
    address: dict[int, str] = {}
    parts: dict[int, ModelConfig] = {}
    steps = config.scheduling.step if isinstance(config.scheduling, Ensembling) else ()
    for index, step in enumerate(steps):
        try:
            address[index], part = _found(serving, spec.id, step.model_namespace, step.model_name, step.model_version)
        except MoorageError as error:
            raise InvalidArgument(f"ensemble '{config.name}': step {index} (model '{step.model_name}'): {error}") from error
        parts[index] = part.config
    plan = compiled(config, address, parts)
    if isinstance(config.scheduling, Ensembling) and config.scheduling.max_inflight_requests:
        log.warning("max_inflight_requests of an ensemble has no effect yet", model=config.name)
    config = evolve(config, model_transaction_policy=TransactionPolicy(decoupled=plan.decoupled))
    return Ensemble(config, spec.version, plan, labels, serving)


def _found(serving: ServingMap[Servable], user: ModelId, namespace: str, name: str, version: int) -> tuple[str, Servable]:
    """The name to ask for a step's model, and what serves under it: that of the ensemble's own namespace first."""
    beside = ModelId(name, namespace or user.namespace)
    address = str(beside) if namespace or beside in serving.models() else name
    return address, serving.get(address, version)
