"""The server's jobs in the shape of the model's requests. Everything is made when the model asks for it."""

from __future__ import annotations

import json
import weakref

from attrs import frozen

from moorage.types import Job
from moorage_python.answers import Answers
from moorage_python.runtime.requests import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    InferenceRequest,
    InferenceTrace,
)
from moorage_python.runtime.responses import InferenceResponse, InferenceResponseSender
from moorage_python.runtime.tensors import Tensor


@frozen
class RequestKind:
    """What all requests of an instance have in common."""

    model_name: str
    model_version: int
    answers: Answers
    decoupled: bool
    senders: weakref.WeakSet[InferenceResponseSender]


class JobChannel:
    """Carries a model's responses to the job's sink."""

    def __init__(self, job: Job, answers: Answers) -> None:
        self._job = job
        self._answers = answers

    def send(self, response: InferenceResponse, *, final: bool) -> None:
        self._job.sink.send(self._answers.response_or_error(response, self._job.request), final=final)

    def complete(self) -> None:
        self._job.sink.complete()

    def fail(self, message: str) -> None:
        self._job.sink.fail(self._answers.error(message))

    def is_cancelled(self) -> bool:
        return self._job.request.cancelled


class JobRequest(InferenceRequest):
    """A request that the server has sent."""

    __slots__ = ("_flags", "_kind", "_sender", "_tensors", "job")

    def __init__(self, job: Job, kind: RequestKind) -> None:
        self.job = job
        self._kind = kind
        self._tensors: dict[str, Tensor] | None = None
        self._sender: InferenceResponseSender | None = None
        if kind.decoupled:
            self.get_response_sender()

    def inputs(self) -> list[Tensor]:
        return list(self._by_name().values())

    def find_input(self, name: str) -> Tensor | None:
        return self._by_name().get(name)

    def request_id(self) -> str:
        return self.job.request.id

    def correlation_id(self) -> int | str:
        return self.job.request.correlation_id

    def requested_output_names(self) -> set[str]:
        return {output.name for output in self.job.request.outputs} or set(self._kind.answers.names)

    def parameters(self) -> str:
        return json.dumps(self.job.request.parameters)

    def flags(self) -> int:
        request = self.job.request
        start = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if request.sequence_start else 0
        return start | (TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if request.sequence_end else 0)

    def set_flags(self, flags: int) -> None:
        self.job.request.sequence_start = bool(flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
        self.job.request.sequence_end = bool(flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)

    def timeout(self) -> int:
        return self.job.request.timeout_us

    def trace(self) -> InferenceTrace:
        return InferenceTrace()

    def model_name(self) -> str:
        return self._kind.model_name

    def model_version(self) -> int:
        return self._kind.model_version

    def is_cancelled(self) -> bool:
        return self.job.request.cancelled

    def get_response_sender(self) -> InferenceResponseSender:
        sender = self._sender
        if sender is None:
            kind = self._kind
            sender = self._sender = InferenceResponseSender(JobChannel(self.job, kind.answers), decoupled=kind.decoupled)
            kind.senders.add(sender)
        return sender

    def _by_name(self) -> dict[str, Tensor]:
        tensors = self._tensors
        if tensors is None:
            tensors = self._tensors = {
                name: Tensor.received(name, tensor.array, tensor.datatype._value_)
                for name, tensor in self.job.request.inputs.items()
            }
        return tensors
