"""A backend for trials, whose models do what their file says, and servers of a temporary repository."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, field

from moorage._app import wiring
from moorage.backend import Backend, Instance, LoadContext, LoadedModel, Placement
from moorage.errors import Cancelled, ModelError, MoorageError
from moorage.hookspecs import hookimpl
from moorage.server import Server
from moorage.testing import RepositoryBuilder
from moorage.types import DataType, InferResponse, Job, Tensor

PATIENCE = 20.0


@define(eq=False)
class Stage:
    """Where tests and models meet: models tell that they run, tests let them go on."""

    entered: threading.Event = field(factory=threading.Event)
    gate: threading.Event = field(factory=threading.Event)
    cancelled: threading.Event = field(factory=threading.Event)
    steps: threading.Semaphore = field(factory=lambda: threading.Semaphore(0))
    jobs: list[Job] = field(factory=list)


class Trial(Backend):
    name = "trial"
    default_model_filename = "model.trial"
    stage: Stage

    def load(self, context: LoadContext) -> LoadedModel:
        kind = context.model_file.read_text().strip()
        if kind == "broken":
            raise ModelError(f"model '{context.model_name}' cannot be read")
        return TrialModel(kind, self.stage, context)


class TrialModel(LoadedModel):
    def __init__(self, kind: str, stage: Stage, context: LoadContext) -> None:
        self._kind, self._stage, self._context = kind, stage, context

    def instance(self, placement: Placement) -> Instance:
        return TrialInstance(self._kind, self._stage, self._context)


class TrialInstance(Instance):
    def __init__(self, kind: str, stage: Stage, context: LoadContext) -> None:
        self._act: Callable[[Job], InferResponse | MoorageError | None] = getattr(self, kind)
        self._stage = stage
        self._outputs = {item.name: item.data_type for item in context.config.output}

    def execute(self, jobs: Sequence[Job]) -> Sequence[InferResponse | MoorageError | None]:
        self._stage.jobs.extend(jobs)
        return [self._act(job) for job in jobs]

    def double(self, job: Job) -> InferResponse:
        return self._answer(job.request.inputs["X"].array * 2)

    def triple(self, job: Job) -> InferResponse:
        return self._answer(job.request.inputs["X"].array * 3)

    def echo(self, job: Job) -> InferResponse:
        return self._answer(job.request.inputs["X"].array)

    def scribble(self, job: Job) -> InferResponse:
        array = job.request.inputs["X"].array
        array += 1
        return self._answer(array)

    def fail(self, job: Job) -> InferResponse:
        raise ValueError("no luck")

    def wait(self, job: Job) -> InferResponse:
        self._stage.entered.set()
        assert self._stage.gate.wait(PATIENCE)
        if job.request.cancelled:
            self._stage.cancelled.set()
        return self.double(job)

    def count(self, job: Job) -> None:
        for number in range(int(job.request.inputs["X"].array[0])):
            job.sink.send(self._answer(np.array([number], np.float32)), final=False)
        job.sink.complete()

    def step(self, job: Job) -> None:
        for number in range(int(job.request.inputs["X"].array[0])):
            assert self._stage.steps.acquire(timeout=PATIENCE)
            job.sink.send(self._answer(np.array([number], np.float32)), final=False)
        job.sink.complete()

    def stumble(self, job: Job) -> None:
        job.sink.send(InferResponse([], error=ModelError("stumbled")), final=False)
        job.sink.send(self._answer(np.array([1], np.float32)), final=True)

    def endless(self, job: Job) -> None:
        self._stage.entered.set()
        job.sink.send(self._answer(np.array([0], np.float32)), final=False)
        while not job.request.cancelled:
            self._stage.gate.wait(0.001)
        self._stage.cancelled.set()
        job.sink.fail(Cancelled("nobody waits"))

    def _answer(self, array: np.ndarray) -> InferResponse:
        tensors = [Tensor(name, datatype, array) for name, datatype in self._outputs.items()]
        return InferResponse(tensors, {"model_says": "hello"})


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """The trial backend is there; at the end all models go on."""
    made = Stage()

    class Staged(Trial):
        stage = made

    class Plugin:
        @hookimpl
        def backends(self) -> Iterable[type[Backend]]:
            return (Staged,)

    monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("trial", Plugin())))
    yield made
    made.gate.set()


def trial_config(datatype: DataType = DataType.FP32, *more: str) -> str:
    tensors = [
        f'{way} [{{ name: "{name}" data_type: {datatype.config} dims: [-1] }}]'
        for way, name in (("input", "X"), ("output", "Y"))
    ]
    return "\n".join(['backend: "trial"', *tensors, *more])


@pytest.fixture
def repository(tmp_path: Path, stage: Stage) -> RepositoryBuilder:
    """A repository that holds `double`."""
    builder = RepositoryBuilder(tmp_path / "repository")
    builder.add("double", {"1/model.trial": "double"}, config=trial_config())
    return builder


AddModel = Callable[..., Path]


@pytest.fixture
def add(repository: RepositoryBuilder) -> AddModel:
    """Adds a model of this kind, which is its name, too."""

    def add_model(
        kind: str, *, datatype: DataType = DataType.FP32, decoupled: bool = False, name: str = "", version: int = 1
    ) -> Path:
        policy = ["model_transaction_policy { decoupled: true }"] if decoupled else []
        return repository.add(name or kind, {f"{version}/model.trial": kind}, config=trial_config(datatype, *policy))

    return add_model


@pytest.fixture
def open_server(repository: RepositoryBuilder) -> Iterator[Callable[..., Server]]:
    """Starts servers that are closed at the end."""
    servers: list[Server] = []

    def start(**options: Any) -> Server:
        servers.append(Server(**{"model_repository": repository.path, **options}).start())
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def no_thread_is_left(stage: Stage) -> Iterator[None]:
    """Fails the test if threads that it started still run at its end; those that are about to end get their time.

    Those that an event loop of the test keeps for `asyncio.to_thread` are its own.
    """
    before = set(threading.enumerate())
    yield
    stage.gate.set()
    started = {thread for thread in set(threading.enumerate()) - before if not thread.name.startswith("asyncio_")}
    deadline = time.monotonic() + PATIENCE
    for thread in started:
        while thread.ident is None and time.monotonic() < deadline:
            time.sleep(0)  # another thread is just starting it
        thread.join(PATIENCE)
    assert not [thread for thread in started if thread.is_alive()]
