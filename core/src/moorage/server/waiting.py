"""Waiting for the one answer to a request, without an event loop on the way."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

from moorage._execution.bells import Bell, leave_own_bell, own_bell
from moorage._inference import InferenceService, OneResponse
from moorage.errors import DeadlineExceeded, Internal, MoorageError
from moorage.server.results import InferResult, result_of
from moorage.types import InferRequest, InferResponse, Sink


class Waiting:
    """The answer to a request, for one thread that waits for it."""

    __slots__ = ("_answer", "_bell", "_request")

    def __init__(self, request: InferRequest, bell: Bell) -> None:
        self._request = request
        self._bell = bell
        self._answer: InferResponse | MoorageError | None = None

    def answered(self, answer: InferResponse | MoorageError) -> None:
        """Note the answer, once; from the model's thread."""
        if self._answer is None:
            self._answer = answer
            self._bell.ring()

    def result(self) -> InferResult:
        """Wait for the answer. Raises its error."""
        self._bell.wait()
        if self._answer is None:
            raise Internal("the bell of a thread was rung for nothing")
        return result_of(self._answer, self._request)


class Deadline:
    """A bell that is waited for so many seconds; then the request is cancelled."""

    def __init__(self, request: InferRequest, seconds: float) -> None:
        self._request = request
        self._seconds = seconds
        self._lock = threading.Lock()
        self._lock.acquire()

    def ring(self) -> None:
        self._lock.release()

    def wait(self) -> None:
        """Raises DeadlineExceeded."""
        if not self._lock.acquire(timeout=max(0.0, self._seconds)):
            self._request.cancelled = True
            raise overdue(self._request, self._seconds)


class PendingResult(Future[InferResult]):
    """A result that will be there. `cancel` tells the model, too, which may or may not heed it."""

    def __init__(self, request: InferRequest) -> None:
        super().__init__()
        self._request = request
        self._claim = threading.Lock()  # taken for good by the first of answer and cancellation

    def cancel(self) -> bool:
        """Give the request up. False if it has been answered."""
        if self._claim.acquire(blocking=False):
            self._request.cancelled = True
            super().cancel()
            self.set_running_or_notify_cancel()
        return self.cancelled()

    def answered(self, answer: InferResponse | MoorageError) -> None:
        """Settle the future, once; from the model's thread."""
        if not self._claim.acquire(blocking=False):
            return
        self.set_running_or_notify_cancel()
        try:
            self.set_result(result_of(answer, self._request))
        except MoorageError as error:
            self.set_exception(error)


def wait(inference: InferenceService, request: InferRequest, timeout: float | None) -> InferResult:
    """Run a request and wait on this thread. Raises its error, and DeadlineExceeded. A thread that is interrupted cancels."""
    waiting = Waiting(request, own_bell() if timeout is None else Deadline(request, timeout))
    try:
        submit(inference, request, OneResponse(waiting.answered, request.model_name), unary=True)
        return waiting.result()
    except MoorageError:
        raise
    except BaseException:  # Ctrl-C: the answer may come yet, and ring
        request.cancelled = True
        leave_own_bell()
        raise


def submit(inference: InferenceService, request: InferRequest, sink: Sink, *, unary: bool) -> None:
    """Have a request run at once, also where an event loop runs.

    What is asked of models in a loop is handed over when the loop's turn ends; a thread that is about to wait lets none end.
    """
    loop = asyncio._get_running_loop()
    if loop is None:
        inference.submit(request, sink, unary=unary)
        return
    asyncio._set_running_loop(None)
    try:
        inference.submit(request, sink, unary=unary)
    finally:
        asyncio._set_running_loop(loop)


def overdue(request: InferRequest, timeout: float | None) -> DeadlineExceeded:
    return DeadlineExceeded(f"model '{request.model_name}' did not answer within {timeout:g} s")
