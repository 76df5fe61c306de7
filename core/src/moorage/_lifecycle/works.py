"""Where the decisions meet the threads: loading, closing, and the way back to the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVarTuple

from moorage._lifecycle.memory import give_back
from moorage._lifecycle.pool import Job, Pool, Renewer, Ticket, failure
from moorage._lifecycle.records import S
from moorage._repository.spec import VersionSpec
from moorage.errors import ErrorRecord

logger = logging.getLogger(__name__)

Args = TypeVarTuple("Args")


class Works(Generic[S]):
    """Runs loads and closes on their pools. Results come back on the event loop in callbacks, which cannot be cancelled."""

    def __init__(self, load: Callable[[VersionSpec], S], loads: Pool, unloads: Pool, renewer: Renewer[S] | None = None) -> None:
        self._load = load
        self._renewer = renewer
        self._loads = loads
        self._unloads = unloads
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that owns the records: the one that runs at first use."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    @property
    def can_renew(self) -> bool:
        return self._renewer is not None

    def load(self, spec: VersionSpec, then: Callable[[S | ErrorRecord], None], donor: S | None = None) -> Ticket:
        """Load on a load thread, or continue `donor`; `then` gets the servable or why there is none.

        If the loop is closed by then, so is the servable.
        """
        renewer = self._renewer
        load = self._load if donor is None or renewer is None else partial(renewer.renew, donor)
        return self._loads.submit(lambda: self._finish_load(load, spec, then))

    def relieve(self, renewed: S) -> None:
        """What continues another servable serves from now on."""
        if self._renewer is not None:
            self._renewer.relieve(renewed)

    def close(self, servable: S, then: Job) -> None:
        """Close on an unload thread, then call `then`, whether or not closing raised."""

        def job() -> None:
            _close(servable)
            give_back()
            self.call(then)

        self._unloads.submit(job)

    def call(self, callback: Callable[[*Args], None], *args: *Args) -> bool:
        """Have the loop call back, from any thread. False if the loop is closed."""
        try:
            self.loop.call_soon_threadsafe(callback, *args)
        except RuntimeError:
            return False
        return True

    def stop(self) -> None:
        self._loads.stop()
        self._unloads.stop()

    def _finish_load(
        self, load: Callable[[VersionSpec], S], spec: VersionSpec, then: Callable[[S | ErrorRecord], None]
    ) -> None:
        result = self._attempt(load, spec)
        if not self.call(then, result) and not isinstance(result, ErrorRecord):
            _close(result)

    @staticmethod
    def _attempt(load: Callable[[VersionSpec], S], spec: VersionSpec) -> S | ErrorRecord:
        try:
            return load(spec)
        except BaseException as error:  # a model's code may raise anything, SystemExit too
            logger.debug("loading failed", exc_info=error)
            return failure(spec.id, spec.version, error)


def _close(servable: S) -> None:
    try:
        servable.close()
    except BaseException:
        logger.exception("closing a model raised")
