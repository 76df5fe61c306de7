"""Instances on their threads: every request is answered, whatever the model does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from moorage._execution.instances import InstanceThread
from moorage._execution.queues import BatchQueue, FifoQueue
from moorage.backend import Instance
from moorage.config.schema import ModelConfig
from moorage.errors import Cancelled, InvalidArgument, ModelError, MoorageError
from moorage.types import InferRequest, InferResponse, Job

CONFIG = ModelConfig(name="scripted")


class Recording:
    """A sink that remembers, and tells when the request is over."""

    def __init__(self) -> None:
        self.responses: list[InferResponse] = []
        self.error: MoorageError | None = None
        self.over = threading.Event()

    def send(self, response: InferResponse, *, final: bool) -> None:
        self.responses.append(response)
        if final:
            self.over.set()

    def fail(self, error: MoorageError) -> None:
        self.error = error
        self.over.set()

    def complete(self) -> None:
        self.over.set()


class Scripted(Instance):
    """Runs a function; remembers its threads."""

    def __init__(self, act: Callable[[Sequence[Job]], Sequence[InferResponse | MoorageError | None]]) -> None:
        self.act = act
        self.threads = [threading.get_ident()]
        self.closed = False

    def execute(self, jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        self.threads.append(threading.get_ident())
        return self.act(jobs)

    def close(self) -> None:
        self.threads.append(threading.get_ident())
        self.closed = True
        raise RuntimeError("a close that fails must not hang the unload")


def run(
    act: Callable[[Sequence[Job]], Sequence[InferResponse | MoorageError | None]],
) -> tuple[Recording, InstanceThread, Scripted]:
    """Run one request through an instance, then close it."""
    queue, made = FifoQueue(), []

    def make() -> Instance:
        made.append(Scripted(act))
        return made[0]

    thread = InstanceThread("scripted_0", CONFIG, queue, make)
    thread.start()
    sink = Recording()
    queue.put(Job(InferRequest("scripted", {}), sink))
    queue.close()
    thread.stop()
    assert sink.over.is_set()
    return sink, thread, made[0]


def test_an_answer_is_delivered_and_counted() -> None:
    response = InferResponse([])
    sink, thread, instance = run(lambda jobs: [response])
    assert sink.responses == [response] and sink.error is None
    counts = thread.recorder
    assert (counts.success.count, counts.fail.count, counts.inference_count, counts.execution_count) == (1, 0, 1, 1)
    assert counts.success.ns >= counts.compute_infer.ns >= 0 and counts.last_inference_ms > 0
    assert instance.closed


def test_an_instance_lives_on_one_thread_that_is_not_the_callers() -> None:
    _, _, instance = run(lambda jobs: [InferResponse([])])
    assert len(instance.threads) == 3 and len(set(instance.threads)) == 1
    assert instance.threads[0] != threading.get_ident()


@pytest.mark.parametrize("failure", [ValueError("sour"), SystemExit("sour"), KeyboardInterrupt("sour")])
def test_whatever_a_model_raises_fails_the_request_and_nothing_else(failure: BaseException) -> None:
    def act(jobs: Sequence[Job]) -> Sequence[InferResponse]:
        raise failure

    sink, thread, _ = run(act)
    assert isinstance(sink.error, ModelError)
    assert "scripted" in str(sink.error) and "sour" in str(sink.error) and type(failure).__name__ in str(sink.error)
    assert thread.recorder.fail.count == 1 and thread.recorder.success.count == 0


def test_an_error_as_an_answer_keeps_its_kind() -> None:
    sink, _, _ = run(lambda jobs: [InvalidArgument("no")])
    assert isinstance(sink.error, InvalidArgument)


def test_a_wrong_number_of_answers_fails_all() -> None:
    sink, _, _ = run(lambda jobs: [])
    assert isinstance(sink.error, ModelError) and "0 of 1" in str(sink.error)


def test_none_leaves_the_answer_to_the_instance() -> None:
    def act(jobs: Sequence[Job]) -> Sequence[None]:
        jobs[0].sink.complete()
        return [None]

    sink, _, _ = run(act)
    assert not sink.responses and sink.error is None


def test_a_failed_start_raises_the_reason_and_leaves_no_thread() -> None:
    def make() -> Instance:
        raise RuntimeError("kaputt")

    thread = InstanceThread("scripted_0", CONFIG, FifoQueue(), make)
    with pytest.raises(RuntimeError, match="kaputt"):
        thread.start()
    thread.stop()


def test_a_request_whose_client_has_gone_is_not_run() -> None:
    queue, sinks = BatchQueue(4), [Recording(), Recording()]
    ran: list[str] = []

    def act(jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        ran.extend(job.request.id for job in jobs)
        return [InferResponse([]) for _ in jobs]

    for number, sink in enumerate(sinks):
        queue.put(Job(InferRequest("scripted", {}, id=str(number), cancelled=number == 0), sink))
    queue.close()
    thread = InstanceThread("scripted_0", CONFIG, queue, lambda: Scripted(act))
    thread.start()
    thread.stop()
    assert ran == ["1"]
    assert isinstance(sinks[0].error, Cancelled)
    assert (thread.recorder.cancelled, thread.recorder.fail.count, thread.recorder.success.count) == (1, 1, 1)


class Speechless(Exception):  # a model's own
    """An exception that raises when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_an_exception_that_cannot_be_shown_is_an_answer_too() -> None:
    def act(jobs: Sequence[Job]) -> Sequence[InferResponse]:
        raise Speechless

    sink, _, _ = run(act)
    assert isinstance(sink.error, ModelError) and "Speechless" in str(sink.error)


def test_an_answer_that_cannot_be_passed_on_ends_no_instance() -> None:
    class Deaf(Recording):
        def send(self, response: InferResponse, *, final: bool) -> None:
            raise ValueError("this cannot be written")

    queue, second = FifoQueue(), Recording()
    thread = InstanceThread("scripted_0", CONFIG, queue, lambda: Scripted(lambda jobs: [InferResponse([])]))
    thread.start()
    queue.put(Job(InferRequest("scripted", {}), Deaf()))
    queue.put(Job(InferRequest("scripted", {}), second))
    queue.close()
    thread.stop()
    assert len(second.responses) == 1


def test_a_backend_that_makes_something_else_fails_the_start() -> None:
    class NoInstance:
        def close(self) -> None:
            return None

    thread = InstanceThread("scripted_0", CONFIG, FifoQueue(), NoInstance)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="execute"):
        thread.start()
    thread.stop()
