"""Responses in the order of their requests, whatever the order in which instances finish."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock

from moorage._logging import get_logger
from moorage.errors import MoorageError
from moorage.types import InferResponse, Job, Sink

log = get_logger("moorage.execution")


class Ordering:
    """Holds back what a request is answered until all requests before it have been answered."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._lock = Lock()
        self._delivering = False

    def add(self, job: Job) -> None:
        """This request comes behind all that were added before. Its sink is replaced by one that waits."""
        turn = _Turn(self, job.sink)
        with self._lock:
            self._turns.append(turn)
        job.sink = turn

    def deliver(self) -> None:
        """Pass on what may go out; one thread does it for all."""
        with self._lock:
            if self._delivering:
                return
            self._delivering = True
        while (answer := self._next()) is not None:
            try:
                answer()
            except Exception:  # the requests behind this one must be answered all the same
                log.exception("an answer could not be delivered")

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            while self._turns:
                first = self._turns[0]
                if first.answers:
                    return first.answers.popleft()
                if not first.ended:
                    break
                self._turns.popleft()
            self._delivering = False
            return None


class _Turn:
    """The sink of one request in an order."""

    __slots__ = ("_ordering", "_sink", "answers", "ended")

    def __init__(self, ordering: Ordering, sink: Sink) -> None:
        self.answers: deque[Callable[[], None]] = deque()
        self.ended = False
        self._ordering = ordering
        self._sink = sink

    def send(self, response: InferResponse, *, final: bool) -> None:
        self._put(partial(self._sink.send, response, final=final), final)

    def fail(self, error: MoorageError) -> None:
        self._put(partial(self._sink.fail, error), True)

    def complete(self) -> None:
        self._put(self._sink.complete, True)

    def _put(self, answer: Callable[[], None], final: bool) -> None:
        self.answers.append(answer)  # before `ended`, so that nobody finds the turn over with an answer still to come
        self.ended = final
        self._ordering.deliver()
