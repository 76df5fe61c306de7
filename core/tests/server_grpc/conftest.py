"""A real gRPC server on a free port, over stand-ins for the inference and the admin service."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pytest
from attrs import define, evolve, field
from tritonclient.grpc import service_pb2, service_pb2_grpc

from moorage._admin.values import (
    BatchStatistics,
    Duration,
    IndexEntry,
    ModelMetadata,
    ModelStatistics,
    ServerMetadata,
    TensorMetadata,
)
from moorage._server.grpc import GrpcOptions, GrpcServer
from moorage.config.schema import ModelConfig, TransactionPolicy
from moorage.control import LoadOptions
from moorage.errors import Internal, ModelError, MoorageError, NotFound, RequestError, Unavailable, Unsupported
from moorage.types import LATEST, DataType, InferRequest, InferResponse, Sink, Tensor

Behaviour = Callable[[InferRequest, Sink], None]


@define
class FakeModel:
    config: ModelConfig
    behaviour: Behaviour


@define
class FakeInference:
    """Models by name, each a function that is run on a thread."""

    models: dict[str, FakeModel] = field(factory=dict)
    seen: list[InferRequest] = field(factory=list)
    pool: ThreadPoolExecutor = field(factory=lambda: ThreadPoolExecutor(4))

    def add(self, name: str, behaviour: Behaviour, *, decoupled: bool = False) -> None:
        policy = TransactionPolicy(decoupled=True) if decoupled else None
        self.models[name] = FakeModel(ModelConfig(name=name, model_transaction_policy=policy), behaviour)

    def model(self, name: str, version: int = LATEST) -> FakeModel:
        if name not in self.models:
            raise NotFound(f"there is no model '{name}'")
        if version not in (LATEST, 1):
            raise NotFound(f"model '{name}' has no version {version}")
        return self.models[name]

    def submit(self, request: InferRequest, sink: Sink, *, unary: bool = False) -> None:
        model = self.model(request.model_name, request.model_version)
        if unary and model.config.decoupled:
            raise Unsupported(f"model '{request.model_name}' is decoupled: use ModelStreamInfer")
        self.seen.append(request)
        if "FULL" in request.inputs:
            raise Unavailable(f"the queue of model '{request.model_name}' is full")
        self.pool.submit(model.behaviour, request, sink)

    async def infer(self, request: InferRequest) -> InferResponse:
        raise NotImplementedError


def answered(request: InferRequest, outputs: list[Tensor], **parameters: Any) -> InferResponse:
    return InferResponse(outputs, parameters=parameters, model_name=request.model_name, model_version=1)


def echo(request: InferRequest, sink: Sink) -> None:
    sink.send(answered(request, list(request.inputs.values())), final=True)


def count(request: InferRequest, sink: Sink) -> None:
    """Send 0, 1, … as often as COUNT says, then complete."""
    for number in range(int(request.inputs["COUNT"].array[0])):
        sink.send(answered(request, [Tensor("INDEX", DataType.INT32, np.array([number], "<i4"))]), final=False)
    sink.complete()


def stumble(request: InferRequest, sink: Sink) -> None:
    """A good response, an error response, and the end."""
    sink.send(answered(request, [Tensor("INDEX", DataType.INT32, np.array([1], "<i4"))]), final=False)
    sink.send(evolve(answered(request, []), error=Internal("tripped")), final=False)
    sink.complete()


def boom(request: InferRequest, sink: Sink) -> None:
    sink.fail(ModelError(f"model '{request.model_name}': bang"))


def annotated(request: InferRequest, sink: Sink) -> None:
    sink.send(answered(request, [], text="t", number=2**63, small=-4, ratio=0.5, flag=True), final=True)


@define
class Gate:
    """A model that answers when it is opened."""

    entered: threading.Event = field(factory=threading.Event)
    opened: threading.Event = field(factory=threading.Event)

    def __call__(self, request: InferRequest, sink: Sink) -> None:
        self.entered.set()
        self.opened.wait(20)
        echo(request, sink)


def refused(value: str) -> MoorageError:
    return RequestError(f"model '{value}' is ambiguous")


@define
class FakeAdmin:
    is_ready: bool = True
    loads: list[tuple[str, LoadOptions]] = field(factory=list)
    unloads: list[tuple[str, bool, frozenset[int]]] = field(factory=list)
    settings: dict[str, bool | int | str] = field(factory=lambda: {"log_file": "", "log_info": True, "log_verbose_level": 2})

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        return self.is_ready

    def model_ready(self, name: str, version: int) -> bool:
        if name != "echo":
            raise NotFound(f"there is no model '{name}'")
        return version in (LATEST, 1)

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("triton", "1.2", ("classification", "sequence"))

    def model_metadata(self, name: str, version: int) -> ModelMetadata:
        if name != "echo":
            raise NotFound(f"there is no model '{name}'")
        tensor = TensorMetadata("IN", "INT32", (-1, 3))
        return ModelMetadata(name, ("1",), "python", (tensor,), (tensor,))

    def model_config(self, name: str, version: int) -> ModelConfig:
        return ModelConfig(name=name, backend="python", max_batch_size=4)

    def statistics(self, name: str = "", version: int = LATEST) -> Sequence[ModelStatistics]:
        if name not in ("", "echo"):
            raise NotFound(f"there is no model '{name}'")
        none, some = Duration(), Duration(2, 50)
        batch = BatchStatistics(2, some, some, none)
        return [ModelStatistics("echo", "1", 7, 3, 2, some, none, some, some, some, some, none, none, (batch,))]

    async def index(self, *, ready: bool = False) -> Sequence[IndexEntry]:
        await asyncio.sleep(0)
        served = IndexEntry("echo", "1", "READY")
        return [served] if ready else [served, IndexEntry("new")]

    async def load(self, name: str, options: LoadOptions) -> None:
        self.loads.append((name, options))
        if name == "missing":
            raise NotFound(f"there is no model '{name}' in any repository")
        if name == "bug":
            raise ZeroDivisionError

    async def unload(self, name: str, *, dependents: bool = False, versions: frozenset[int] = frozenset()) -> None:
        self.unloads.append((name, dependents, versions))

    def log_settings(self) -> Mapping[str, bool | int | str]:
        return self.settings

    def update_log_settings(self, changes: Mapping[str, bool | int | str]) -> Mapping[str, bool | int | str]:
        self.settings.update(changes)
        return self.settings


class Client:
    """Official messages and stub over a channel of its own."""

    pb = service_pb2

    def __init__(self, server: GrpcServer) -> None:
        self.server = server
        options = [
            ("grpc.max_receive_message_length", -1),
            ("grpc.max_send_message_length", -1),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        self.channel: Any = grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options)
        self.stub = service_pb2_grpc.GRPCInferenceServiceStub(self.channel)

    def request(self, model: str, **inputs: np.ndarray) -> Any:
        """A request with raw INT32 and FP32 inputs."""
        request = service_pb2.ModelInferRequest(model_name=model)
        for name, array in inputs.items():
            request.inputs.add(name=name, datatype="FP32" if array.dtype.kind == "f" else "INT32", shape=array.shape)
            request.raw_input_contents.append(array.tobytes())
        return request

    def error(self, call: Callable[..., Any], *args: Any, **options: Any) -> tuple[str, str]:
        """Status and details of a call that must fail."""
        with pytest.raises(grpc.RpcError) as caught:
            call(*args, **options)
        error: Any = caught.value
        return error.code().name, error.details()


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs on a thread: clients in the tests block theirs."""
    running = asyncio.new_event_loop()
    thread = threading.Thread(target=running.run_forever)
    thread.start()
    yield running
    running.call_soon_threadsafe(running.stop)
    thread.join()
    running.close()


@pytest.fixture
def inference() -> Iterator[FakeInference]:
    fake = FakeInference()
    fake.add("echo", echo)
    fake.add("boom", boom)
    fake.add("annotated", annotated)
    fake.add("mute", lambda _request, sink: sink.complete())
    fake.add("counter", count, decoupled=True)
    fake.add("stumbler", stumble, decoupled=True)
    yield fake
    fake.pool.shutdown()


@pytest.fixture
def gate(inference: FakeInference) -> Iterator[Gate]:
    made = Gate()
    inference.add("slow", made)
    yield made
    made.opened.set()


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def serve(inference: FakeInference, admin: FakeAdmin, loop: asyncio.AbstractEventLoop) -> Iterator[Callable[..., GrpcServer]]:
    """Start a server with options."""
    servers: list[GrpcServer] = []

    def start(**options: Any) -> GrpcServer:
        server = GrpcServer(inference, admin, GrpcOptions(**{"port": 0, **options}))
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        servers.append(server)
        return server

    yield start
    for server in servers:
        asyncio.run_coroutine_threadsafe(server.stop(0), loop).result(10)


@pytest.fixture
def connect(serve: Callable[..., GrpcServer]) -> Iterator[Callable[..., Client]]:
    """Start a server with options and connect to it."""
    clients: list[Client] = []

    def start(**options: Any) -> Client:
        clients.append(Client(serve(**options)))
        return clients[-1]

    yield start
    for client in clients:
        client.channel.close()


@pytest.fixture(params=["native", "portable"])
def client(request: pytest.FixtureRequest, connect: Callable[..., Client]) -> Client:
    """A client of a server with default options, by either way of carrying calls."""
    return connect(portable=request.param == "portable")
