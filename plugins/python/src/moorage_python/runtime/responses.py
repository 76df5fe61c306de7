"""Responses as models make them, and the senders that carry them."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from moorage_python.runtime.failures import TritonError, TritonModelException
from moorage_python.runtime.tensors import Tensor

TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class InferenceResponse:
    """The answer to a request: tensors, or an error."""

    __slots__ = ("_error", "_parameters", "_tensors")

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, str | int | float | bool] | None = None,
    ) -> None:
        for tensor in output_tensors:
            if not isinstance(tensor, Tensor):
                raise TritonModelException(
                    f"output_tensors holds a {type(tensor).__name__}; make a pb_utils.Tensor(name, array) of it"
                )
        if error is not None and not isinstance(error, TritonError):
            raise TritonModelException(f"error is a {type(error).__name__}; it must be a pb_utils.TritonError")
        self._tensors = list(output_tensors)
        self._error = error
        self._parameters = _checked(parameters)

    def output_tensors(self) -> list[Tensor]:
        """The tensors, in the order in which they were given."""
        return self._tensors

    def has_error(self) -> bool:
        """Whether this is an error instead of tensors."""
        return self._error is not None

    def error(self) -> TritonError | None:
        """The error, or None."""
        return self._error

    def parameters(self) -> str:
        """The response's parameters as JSON."""
        return json.dumps(self._parameters or {})


def parameters_of(response: InferenceResponse) -> dict[str, str | int | float | bool] | None:
    """The response's parameters, None when it has none."""
    return response._parameters


def _checked(parameters: Mapping[Any, Any] | None) -> dict[str, str | int | float | bool] | None:
    if not parameters:
        return None
    for name, value in parameters.items():
        if not isinstance(name, str) or not isinstance(value, (str, int, float)):
            raise TritonModelException(f"parameter {name!r}: names are text, values are text, numbers or booleans")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TritonModelException(f"parameter {name!r}: {value} does not fit in 64 bits")
        if not _is_unicode(name) or (isinstance(value, str) and not _is_unicode(value)):
            raise TritonModelException(f"parameter {name!r}: the text cannot be written as UTF-8")
    return dict(parameters)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Channel(Protocol):
    """Where the responses to one request go; called from any thread, never twice at a time."""

    def send(self, response: InferenceResponse, *, final: bool) -> None:
        """Deliver a response; `final` says that no more will come."""

    def complete(self) -> None:
        """No more responses will come."""

    def fail(self, message: str) -> None:
        """The request ends with an error: no more responses will come."""

    def is_cancelled(self) -> bool:
        """Whether the client has gone."""


class InferenceResponseSender:
    """Sends the responses to one request, from any thread, also after `execute` has returned."""

    __slots__ = ("__weakref__", "_channel", "_closed", "_decoupled", "_lock", "_sent")

    def __init__(self, channel: Channel, *, decoupled: bool) -> None:
        self._channel = channel
        self._decoupled = decoupled
        self._lock = threading.Lock()
        self._sent = 0
        self._closed = False

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response, or only say that the last has been sent, with `flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL`."""
        final = flags == TRITONSERVER_RESPONSE_COMPLETE_FINAL
        with self._lock:
            self._check(response, flags)
            self._sent += response is not None
            self._closed = final
            if self._decoupled:
                self._deliver(response, final)
            elif response is not None:
                self._deliver(response, final=True)

    def is_cancelled(self) -> bool:
        """Whether the client has gone."""
        return self._channel.is_cancelled()

    def _deliver(self, response: InferenceResponse | None, final: bool) -> None:
        if response is None:
            self._channel.complete()
        else:
            self._channel.send(response, final=final)

    def _check(self, response: InferenceResponse | None, flags: int) -> None:
        if flags not in (0, TRITONSERVER_RESPONSE_COMPLETE_FINAL):
            raise TritonModelException(
                f"cannot send a response: flags {flags}; 0 and TRITONSERVER_RESPONSE_COMPLETE_FINAL are known"
            )
        if self._closed:
            raise TritonModelException("cannot send a response: the request is finished, its final response has been sent")
        if response is not None and not isinstance(response, InferenceResponse):
            raise TritonModelException(f"cannot send a {type(response).__name__}; make a pb_utils.InferenceResponse of it")
        if response is None and not flags:
            raise TritonModelException("cannot send nothing: give a response, or flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL")
        if not self._decoupled:
            self._check_single(response)

    def _check_single(self, response: InferenceResponse | None) -> None:
        if response is not None and self._sent:
            raise TritonModelException(
                "cannot send a second response: the model is not decoupled (model_transaction_policy { decoupled: true })"
            )
        if response is None and not self._sent:
            raise TritonModelException("cannot finish without a response: the model is not decoupled")

    def finish(self) -> bool:
        """Close the sender, whose request is answered otherwise; False if its final response has been sent already."""
        with self._lock:
            answered = self._closed or (not self._decoupled and self._sent > 0)
            self._closed = True
        return not answered

    def fail(self, message: str) -> None:
        """End the request with an error, unless it is finished."""
        if self.finish():
            self._channel.fail(message)

    def answered(self) -> bool:
        """Whether the request has got all that it will get."""
        return self._closed or (not self._decoupled and self._sent > 0)

    def __del__(self) -> None:
        if not self.answered():
            self._channel.fail("the model dropped the request without sending its final response")
