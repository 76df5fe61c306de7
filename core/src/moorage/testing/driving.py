"""Drives the instances of a backend as the server's core does, without the server."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from moorage.backend import BatchInstance, Instance
from moorage.config.schema import ModelConfig
from moorage.errors import MoorageError
from moorage.types import InferRequest, InferResponse, Job, RequestedOutput, Tensor

Arrays = Mapping[str, np.ndarray]
Results = dict[str, np.ndarray]


class Recorder:
    """A sink that keeps what it is given. `ended` is set by the last call for the request."""

    def __init__(self) -> None:
        self.responses: list[InferResponse] = []
        self.error: MoorageError | None = None
        self.ended = threading.Event()

    def send(self, response: InferResponse, *, final: bool) -> None:
        """Keep a response."""
        self.responses.append(response)
        if final:
            self._end()

    def fail(self, error: MoorageError) -> None:
        """Keep the error."""
        self.error = error
        self._end()

    def complete(self) -> None:
        """Note the end."""
        self._end()

    def _end(self) -> None:
        if self.ended.is_set():
            raise AssertionError("the request was ended twice")
        self.ended.set()


class Runner:
    """Runs requests on one instance, whichever of the two kinds it is."""

    def __init__(self, instance: Instance | BatchInstance, config: ModelConfig, *, timeout: float = 30) -> None:
        self.instance = instance
        self._config = config
        self._types = {one.name: one.data_type for one in config.input}
        self._timeout = timeout

    def one(self, inputs: Arrays, outputs: Sequence[str] = ()) -> Results:
        """The outputs of one request (all if none are named). Raises the MoorageError that it ended with."""
        return self.together([inputs], outputs)[0]

    def together(self, requests: Sequence[Arrays], outputs: Sequence[str] = ()) -> list[Results]:
        """The outputs of requests that run at once: as one batch, or in one call of `execute`."""
        if isinstance(self.instance, BatchInstance):
            return self._batch(self.instance, requests, outputs)
        return self._jobs(self.instance, requests, outputs)

    def _batch(self, instance: BatchInstance, requests: Sequence[Arrays], outputs: Sequence[str]) -> list[Results]:
        names = list(outputs) or [one.name for one in self._config.output]
        if len(requests) == 1:
            return [dict(instance.run(requests[0], names))]
        stacked = {name: np.concatenate([request[name] for request in requests]) for name in requests[0]}
        results = instance.run(stacked, names)
        rows = np.cumsum([len(next(iter(request.values()))) for request in requests])[:-1]
        parts = {name: np.split(array, rows) for name, array in results.items()}
        return [{name: parts[name][index] for name in parts} for index in range(len(requests))]

    def _jobs(self, instance: Instance, requests: Sequence[Arrays], outputs: Sequence[str]) -> list[Results]:
        sinks = [Recorder() for _ in requests]
        jobs = [Job(self._request(request, outputs), sink) for request, sink in zip(requests, sinks, strict=True)]
        answers = instance.execute(jobs)
        return [self._outputs(answer, sink) for answer, sink in zip(answers, sinks, strict=True)]

    def _request(self, inputs: Arrays, outputs: Sequence[str]) -> InferRequest:
        tensors = {name: Tensor(name, self._types[name], array) for name, array in inputs.items()}
        return InferRequest(self._config.name, tensors, outputs=tuple(map(RequestedOutput, outputs)))

    def _outputs(self, answer: InferResponse | MoorageError | None, sink: Recorder) -> Results:
        if answer is None:
            if not sink.ended.wait(self._timeout):
                raise AssertionError("the request was never ended")
            answer = sink.error or sink.responses[-1]
        if isinstance(answer, MoorageError):
            raise answer
        if answer.error is not None:
            raise answer.error
        return {tensor.name: tensor.array for tensor in answer.outputs}
