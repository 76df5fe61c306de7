"""Instances and their threads: each takes requests from its model's queue and answers them.

The thread that makes an instance is the thread that runs and closes it, so that models may keep what belongs to a thread.
A host for another process has the same three methods (`start`, `stop`, `recorder`) and takes from the same `Intake`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from moorage._execution.batching import Answer, BatchRunner
from moorage._execution.statistics import Execution, Recorder
from moorage._execution.warmup import Sample
from moorage._logging import get_logger
from moorage.backend import BatchInstance, Instance
from moorage.config.schema import ModelConfig
from moorage.errors import Cancelled, ModelError, MoorageError, described
from moorage.types import InferResponse, Job

Run = Callable[[Sequence[Job], Execution], Sequence[Answer]]

log = get_logger("moorage.execution")


class Intake(Protocol):
    """Where an instance gets its requests."""

    def take(self) -> list[Job] | None:
        """Wait for the next requests to run together; None when the instance is to end."""


class _FirstError:
    """The sink of warm-up requests: keeps the first error and drops the responses."""

    def __init__(self) -> None:
        self.error: MoorageError | None = None

    def send(self, response: InferResponse, *, final: bool) -> None:
        self.error = self.error or response.error

    def fail(self, error: MoorageError) -> None:
        self.error = self.error or error

    def complete(self) -> None:
        return None


class InstanceThread:
    """One instance on a thread of its own."""

    def __init__(
        self,
        name: str,
        config: ModelConfig,
        queue: Intake,
        make: Callable[[], Instance | BatchInstance],
        warmups: Sequence[Sample] = (),
    ) -> None:
        self.name = name
        self._warmups = warmups
        self.recorder = Recorder()
        self._config = config
        self._queue = queue
        self._make = make
        self._made: Future[None] = Future()
        self._thread = threading.Thread(target=self._live, name=f"instance-{name}", daemon=True)

    def start(self) -> None:
        """Make the instance; returns when it can take requests. Raises what making it raised."""
        self._thread.start()
        self._made.result()

    def stop(self) -> None:
        """Wait until the thread has ended (its queue must be closed or its seat left) and the instance is closed."""
        if self._thread.ident is not None:
            self._thread.join()

    def _live(self) -> None:
        try:
            instance = self._make()
        except BaseException as error:  # noqa: BLE001  a model may raise anything, SystemExit too
            self._made.set_exception(_as_exception(error))
            return
        try:
            run = self._runner(instance)
            self._warm_up(run)
        except BaseException as error:  # noqa: BLE001  whatever it is, whoever waits for the start must hear of it
            self._close(instance)
            self._made.set_exception(_as_exception(error))
            return
        self._made.set_result(None)
        while (jobs := self._queue.take()) is not None:
            if wanted := self._wanted(jobs):
                self._run(run, wanted)
        self._close(instance)

    def _wanted(self, jobs: list[Job]) -> list[Job]:
        """The requests without those whose client has gone, which are failed and not run."""
        gone = [job for job in jobs if job.request.cancelled]
        if not gone:
            return jobs
        for job in gone:
            self.recorder.dropped(job.arrived_ns)
            job.sink.fail(Cancelled(f"model '{self._config.name}': the request was cancelled while it waited"))
        return [job for job in jobs if job not in gone]

    def _warm_up(self, run: Run) -> None:
        """Run the warm-up requests. Raises the error of the first that fails."""
        for sample in self._warmups:
            for requests in sample.executions(self._config.name):
                sink = _FirstError()
                self._run(run, [Job(request, sink) for request in requests])
                if sink.error is not None:
                    raise ModelError(f"warm-up '{sample.name}': {sink.error}") from sink.error

    def _runner(self, instance: Instance | BatchInstance) -> Run:
        if isinstance(instance, BatchInstance):
            return BatchRunner(self._config, instance)
        execute = instance.execute

        def run(jobs: Sequence[Job], times: Execution) -> Sequence[Answer]:
            times.computing = time.monotonic_ns()
            answers = execute(jobs)
            times.computed = time.monotonic_ns()
            return answers

        return run

    def _run(self, run: Run, jobs: list[Job]) -> None:
        now = time.monotonic_ns()
        times = Execution(now, now, now)
        try:
            answers = run(jobs, times)
            if len(answers) != len(jobs):
                raise ModelError(f"model '{self._config.name}' answered {len(answers)} of {len(jobs)} requests")
        except MoorageError as error:
            answers = [error] * len(jobs)
        except BaseException as error:  # noqa: BLE001 a model may raise anything, SystemExit too
            failure = ModelError(f"model '{self._config.name}' failed: {described(error)}")
            failure.__cause__ = error
            answers = [failure] * len(jobs)
        times.computed = max(times.computed, times.computing)
        times.ended = time.monotonic_ns()
        self._deliver(jobs, answers, times)

    def _deliver(self, jobs: list[Job], answers: Sequence[Answer], times: Execution) -> None:
        recorder = self.recorder
        recorder.executed(times, sum(job.batch_size for job in jobs))
        for job, answer in zip(jobs, answers, strict=True):
            if isinstance(answer, MoorageError):
                recorder.failed(times, job.arrived_ns)
            else:
                recorder.succeeded(times, job.arrived_ns, job.batch_size)
            self._hand_over(job, answer)

    def _hand_over(self, job: Job, answer: Answer) -> None:
        try:
            if isinstance(answer, MoorageError):
                job.sink.fail(answer)
            elif answer is not None:
                job.sink.send(answer, final=True)
        except Exception:  # one request's answer that cannot be passed on must not end the instance for all others
            log.exception("an answer could not be passed on", instance=self.name, model=self._config.name)

    def _close(self, instance: Instance | BatchInstance) -> None:
        try:
            instance.close()
        except BaseException:  # the unload goes on, whatever the model does
            log.exception("closing an instance failed", instance=self.name, model=self._config.name)


def _as_exception(error: BaseException) -> Exception:
    return error if isinstance(error, Exception) else ModelError(described(error))
