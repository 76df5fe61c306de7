"""Threads that load and close models, and the translation of whatever that raises.

The threads are daemons, which those of the standard library's executors are not: a load that never returns must not
keep the process from ending.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Protocol, TypeVar

from moorage._repository.spec import VersionSpec
from moorage.control import ModelId
from moorage.errors import Code, ErrorRecord, MoorageError

logger = logging.getLogger(__name__)

Job = Callable[[], None]
Ticket = Future[None]
"""A job that waits: `cancel()` is true if it will never run."""


class Servable(Protocol):
    """What the lifecycle needs of a loaded version."""

    def close(self) -> None:
        """Give everything back. Blocking; called once, on an unload thread, when no request holds the version."""


S = TypeVar("S", bound=Servable)


class Renewer(Protocol[S]):
    """Changes the instances of versions that serve."""

    def renew(self, old: S, spec: VersionSpec) -> S:
        """Continue a version that serves with other instance groups, on a load thread. May raise anything."""

    def relieve(self, renewed: S) -> None:
        """What was renewed serves from now on, in place of what it continues. Called on the event loop: must be quick."""


class Pool(Protocol):
    """Where jobs run. Called from the event loop only."""

    def submit(self, job: Job) -> Ticket: ...

    def stop(self) -> None:
        """End the threads when the jobs handed in so far are done. Does not wait."""


class ThreadPool:
    """At most `threads` daemon threads, started as jobs come in."""

    def __init__(self, name: str, threads: int) -> None:
        self._name = name
        self._limit = threads
        self._threads: list[threading.Thread] = []
        self._jobs: SimpleQueue[tuple[Ticket, Job] | None] = SimpleQueue()

    def submit(self, job: Job) -> Ticket:
        ticket: Ticket = Future()
        self._jobs.put((ticket, job))
        if len(self._threads) < self._limit:
            thread = threading.Thread(target=self._work, name=f"moorage-{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return ticket

    def stop(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
        self._threads = []

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            ticket, job = item
            if not ticket.set_running_or_notify_cancel():
                continue
            try:
                job()
            except BaseException:
                logger.exception("a job of the %s threads failed", self._name)
            del item, ticket, job


def failure(model_id: ModelId, version: int, error: BaseException) -> ErrorRecord:
    """Whatever a load raised as a record that names the model. Messages of foreign exceptions are kept behind their type."""
    record = ErrorRecord.of(error)
    message = record.message
    if not isinstance(error, MoorageError) and type(error).__name__ != message:
        message = f"{type(error).__name__}: {message}"
    if f"'{model_id}'" not in message:
        message = f"model '{model_id}' version {version}: {message}"
    code = record.code if isinstance(error, MoorageError) else Code.INTERNAL
    return ErrorRecord(code, message, record.faults, record.passing)
