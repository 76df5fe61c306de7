"""Requests as models see them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from moorage_python.runtime.failures import NotSupportedYet, TritonError, TritonModelException
from moorage_python.runtime.responses import InferenceResponse, InferenceResponseSender
from moorage_python.runtime.tensors import Tensor

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_REQUEST_RELEASE_ALL = 1
TRITONSERVER_REQUEST_RELEASE_RESCHEDULE = 2


class InferenceTrace:
    """The trace that a request belongs to."""

    def get_context(self) -> str | None:
        """The trace context of OpenTelemetry as JSON; None when the request is not traced."""
        return None


class PreferredMemory:
    """Where the tensors of a response should lie; only the CPU's memory is offered."""

    def __init__(self, preferred_memory_type: int, preferred_device_id: int = 0) -> None:
        self.preferred_memory_type = preferred_memory_type
        self.preferred_device_id = preferred_device_id


class Collected:
    """The channel of a request that no server has sent: keeps what a sender sends, for a test to look at."""

    def __init__(self) -> None:
        self.responses: list[InferenceResponse] = []
        self.finished = False

    def send(self, response: InferenceResponse, *, final: bool) -> None:
        self.responses.append(response)
        self.finished = final

    def complete(self) -> None:
        self.finished = True

    def fail(self, message: str) -> None:
        self.responses.append(InferenceResponse(error=TritonError(message)))
        self.finished = True

    def is_cancelled(self) -> bool:
        return False


class InferenceRequest:
    """A request. Models get them in `execute`; a test without a server makes its own."""

    def __init__(  # noqa: PLR0917 - the order is Triton's
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] = (),
        requested_output_names: Iterable[str] = (),
        model_name: str = "",
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        preferred_memory: PreferredMemory | None = None,
        trace: InferenceTrace | None = None,
        parameters: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        if not isinstance(correlation_id, (int, str)):
            raise TritonModelException("correlation_id must be a whole number or text")
        self._inputs = list(inputs)
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._requested_output_names = set(requested_output_names)
        self._model_name = model_name
        self._model_version = model_version
        self._flags = flags
        self._timeout = timeout
        self._trace = trace or InferenceTrace()
        self._parameters = dict(parameters or {})
        self._sender: InferenceResponseSender | None = None
        self.sent = Collected()

    def inputs(self) -> list[Tensor]:
        """The input tensors."""
        return self._inputs

    def find_input(self, name: str) -> Tensor | None:
        """The input of this name, or None."""
        return next((tensor for tensor in self.inputs() if tensor.name() == name), None)

    def request_id(self) -> str:
        """The id that the client gave, empty if it gave none."""
        return self._request_id

    def correlation_id(self) -> int | str:
        """The sequence's id, 0 outside sequences."""
        return self._correlation_id

    def requested_output_names(self) -> set[str]:
        """The outputs that the client asked for; all of the model's if it named none."""
        return self._requested_output_names

    def parameters(self) -> str:
        """The request's parameters as JSON."""
        return json.dumps(self._parameters)

    def flags(self) -> int:
        """TRITONSERVER_REQUEST_FLAG_SEQUENCE_START and _END, or'ed."""
        return self._flags

    def set_flags(self, flags: int) -> None:
        """Change the flags."""
        self._flags = flags

    def timeout(self) -> int:
        """Microseconds that the client gives the request, 0 for no limit."""
        return self._timeout

    def trace(self) -> InferenceTrace:
        """The trace that the request belongs to."""
        return self._trace

    def model_name(self) -> str:
        """The model that the request is for."""
        return self._model_name

    def model_version(self) -> int:
        """The version that the request is for, -1 for the newest."""
        return self._model_version

    def is_cancelled(self) -> bool:
        """Whether the client has gone."""
        return False

    @property
    def sender(self) -> InferenceResponseSender | None:
        """The sender, if there is one already."""
        return self._sender

    def get_response_sender(self) -> InferenceResponseSender:
        """What sends this request's responses."""
        if self._sender is None:
            self._sender = InferenceResponseSender(self.sent, decoupled=True)
        return self._sender

    def set_release_flags(self, flags: int) -> None:
        """Say what becomes of the request after `execute`. Rescheduling (iterative sequences) is not supported yet."""
        if flags != TRITONSERVER_REQUEST_RELEASE_ALL:
            raise NotSupportedYet("rescheduling a request (iterative sequences) is not supported yet")

    def exec(self, decoupled: bool = False) -> NoReturn:
        """Run this request on another model of the server: not supported yet."""
        raise self._no_calls()

    async def async_exec(self, decoupled: bool = False) -> Any:
        """Run this request on another model of the server: not supported yet."""
        raise self._no_calls()

    def _no_calls(self) -> NotSupportedYet:
        return NotSupportedYet(
            f"calling another model ('{self._model_name}') from a model is not supported yet; use an ensemble"
        )


def get_input_tensor_by_name(inference_request: InferenceRequest, name: str) -> Tensor | None:
    """The request's input of this name, or None."""
    return inference_request.find_input(name)


def get_output_tensor_by_name(inference_response: InferenceResponse, name: str) -> Tensor | None:
    """The response's output of this name, or None."""
    return next((tensor for tensor in inference_response.output_tensors() if tensor.name() == name), None)
