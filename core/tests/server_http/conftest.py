"""Stand-ins for the rooms below HTTP, and a client that needs no socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
import uvicorn
from attrs import define, field, frozen
from uvicorn.server import ServerState

from moorage._admin import (
    BatchStatistics,
    Duration,
    IndexEntry,
    ModelMetadata,
    ModelStatistics,
    Reloaded,
    ServerMetadata,
    TensorMetadata,
)
from moorage._control.forecast import Step
from moorage._server.http import HttpOptions, build_app
from moorage._server.http.lane import Heads
from moorage._server.http.protocol import HttpProtocol
from moorage.config.schema import ModelConfig, ModelInput
from moorage.control import LoadOptions
from moorage.errors import NotFound
from moorage.types import LATEST, DataType, InferRequest, InferResponse, Sink

METADATA = ModelMetadata(
    "ident", ("1",), "python", (TensorMetadata("X", "FP32", (-1,)),), (TensorMetadata("X", "FP32", (-1,)),)
)


@define
class FakeInference:
    """Gives the inputs back as outputs, or does what `answer` says."""

    answer: Callable[[InferRequest], InferResponse] | None = None
    seen: list[InferRequest] = field(factory=list)
    wait: asyncio.Event | None = None
    begun: asyncio.Event = field(factory=asyncio.Event)
    running: list[asyncio.Future[InferResponse]] = field(factory=list)

    def submit(self, request: InferRequest, sink: Sink, *, unary: bool = False) -> None:
        raise NotImplementedError

    def start(self, request: InferRequest, answered: Callable[[Any], None]) -> None:
        self.running.append(running := asyncio.ensure_future(self.infer(request)))
        running.add_done_callback(lambda done: answered(done.exception() or done.result()))

    async def infer(self, request: InferRequest) -> InferResponse:
        self.seen.append(request)
        self.begun.set()
        if self.wait is not None:
            await self.wait.wait()
        response = self.answer(request) if self.answer else InferResponse(list(request.inputs.values()))
        response.model_name = request.model_name
        response.model_version = 1 if request.model_version == LATEST else request.model_version
        return response


@define
class FakeAdmin:
    """Knows one model, `ident`, and writes down what it is told to do."""

    is_ready: bool = True
    config: ModelConfig = field(
        factory=lambda: ModelConfig(name="ident", input=(ModelInput(name="X", data_type=DataType.FP32, dims=(-1,)),))
    )
    told: list[Any] = field(factory=list)
    settings: dict[str, bool | int | str] = field(factory=lambda: {"log_info": True, "log_verbose_level": 0})
    error: Exception | None = None
    stats: list[ModelStatistics] = field(factory=lambda: [statistics_of("ident")])

    def live(self) -> bool:
        return True

    def ready(self) -> bool:
        return self.is_ready

    def _known(self, name: str, version: int) -> None:
        if self.error is not None:
            raise self.error
        if name != "ident" or version not in (LATEST, 1):
            raise NotFound(f"model '{name}' is unknown")

    def model_ready(self, name: str, version: int) -> bool:
        self._known(name, version)
        return self.is_ready

    def server_metadata(self) -> ServerMetadata:
        return ServerMetadata("moorage", "9.9", ("statistics",))

    def model_metadata(self, name: str, version: int) -> ModelMetadata:
        self._known(name, version)
        return METADATA

    def model_config(self, name: str, version: int) -> ModelConfig:
        self._known(name, version)
        return self.config

    def statistics(self, name: str = "", version: int = LATEST) -> Sequence[ModelStatistics]:
        if name:
            self._known(name, version)
        return self.stats

    async def index(self, *, ready: bool = False) -> Sequence[IndexEntry]:
        entries = [IndexEntry("ident", "1", "READY"), IndexEntry("never")]
        return entries[:1] if ready else entries

    async def plan(self) -> Sequence[Step]:
        return [Step("ident", 1, "replace", "the files differ"), Step("worse", None, "refuse", "kaputt")]

    async def reload(self) -> Sequence[Reloaded]:
        return [Reloaded("ident", "reloaded"), Reloaded("worse", "error", "kaputt")]

    async def load(self, name: str, options: LoadOptions) -> None:
        if self.error is not None:
            raise self.error
        self.told.append(("load", name, options))

    async def unload(self, name: str, *, dependents: bool = False, versions: frozenset[int] = frozenset()) -> None:
        self.told.append(("unload", name, dependents, versions))

    def log_settings(self) -> Mapping[str, bool | int | str]:
        return self.settings

    def update_log_settings(self, changes: Mapping[str, bool | int | str]) -> Mapping[str, bool | int | str]:
        self.settings.update(changes)
        return self.settings


def statistics_of(name: str, version: str = "1") -> ModelStatistics:
    """Statistics of a version, each number different."""
    return ModelStatistics(
        name=name,
        version=version,
        last_inference=1700000000000,
        inference_count=7,
        execution_count=3,
        success=Duration(5, 5_000),
        fail=Duration(2, 2_000),
        queue=Duration(5, 1_000),
        compute_input=Duration(5, 1_100),
        compute_infer=Duration(5, 2_500),
        compute_output=Duration(5, 1_300),
        cache_hit=Duration(),
        cache_miss=Duration(),
        batch_stats=(BatchStatistics(2, Duration(3, 10), Duration(3, 20), Duration(3, 30)),),
    )


@frozen
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: Any,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request straight to an ASGI application; several pieces of body make a chunked request."""
    chunks = [body] if isinstance(body, bytes) else list(body)
    raw_path, _, query = path.partition("?")
    given = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    if isinstance(body, bytes) and body:
        given.append((b"content-length", b"%d" % len(body)))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": raw_path,
        "raw_path": raw_path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": given,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
        "state": {},
    }
    sent: list[dict[str, Any]] = []
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        if chunks:
            return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    start, *bodies = sent
    answer_headers = {k.decode().lower(): v.decode() for k, v in start["headers"]}
    whole = b"".join(bytes(message.get("body", b"")) for message in bodies)
    assert not bodies[-1].get("more_body", False)
    if "content-length" in answer_headers:
        assert int(answer_headers["content-length"]) == len(whole)
    return Answer(start["status"], answer_headers, whole)


class Wire(asyncio.Transport):
    """The other end of a connection that has no socket: keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = asyncio.Event()
        self.changed = asyncio.Event()

    @property
    def said(self) -> bytes:
        return b"".join(self.written)

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))
        self.changed.set()

    def close(self) -> None:
        self.closed.set()
        self.changed.set()

    abort = close

    def is_closing(self) -> bool:
        return self.closed.is_set()

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    async def answers(self, count: int) -> list[Answer]:
        """The first `count` responses, when they are there or the connection is closed."""
        while len(found := answers_in(self.said)) < count and not self.is_closing():
            self.changed.clear()
            await asyncio.wait_for(self.changed.wait(), 5)
        return found


def answers_in(said: bytes) -> list[Answer]:
    """The complete responses in what a server has written; each must have a Content-Length."""
    found = []
    while b"\r\n\r\n" in said:
        head, _, rest = said.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers["content-length"])
        if len(rest) < length:
            break
        found.append(Answer(int(status.split()[1]), headers, rest[:length]))
        said = rest[length:]
    return found


def connected(app: Any) -> tuple[HttpProtocol, Wire]:
    """A connection to an application, and its other end."""
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, ws="none", interface="asgi3")
    config.load()
    protocol = HttpProtocol(config=config, server_state=ServerState(), app_state={}, lane=app.lane, heads=Heads())
    wire = Wire()
    protocol.connection_made(wire)
    return protocol, wire


def request_bytes(method: str, path: str, body: bytes | Sequence[bytes], headers: Mapping[str, str]) -> bytes:
    """A request as a client would write it; several pieces of body are chunks unless a length is given."""
    given = {"host": "x"} | {name.lower(): value for name, value in headers.items()}
    if isinstance(body, bytes):
        given.setdefault("content-length", str(len(body)))
    elif "content-length" not in given:
        given["transfer-encoding"] = "chunked"
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*body, b""])
    else:
        body = b"".join(body)
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def ask_by_wire(
    app: Any,
    method: str,
    path: str,
    body: bytes | Sequence[bytes] = b"",
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One request through a connection, where the lane may take it."""
    protocol, wire = connected(app)
    protocol.data_received(request_bytes(method, path, body, headers or {}))
    (answer,) = await wire.answers(1)
    protocol.connection_lost(None)
    return answer


async def post_json(app: Any, path: str, value: Any, headers: Mapping[str, str] | None = None) -> Answer:
    return await ask(app, "POST", path, json.dumps(value).encode(), headers)


@define
class Client:
    """Asks one application."""

    app: Any
    way: Callable[..., Awaitable[Answer]] = ask

    async def ask(self, method: str, path: str, body: bytes | Sequence[bytes] = b"", **headers: str) -> Answer:
        """Header names are written with underscores."""
        return await self.way(self.app, method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})

    async def post(self, path: str, value: Any, **headers: str) -> Answer:
        return await self.ask("POST", path, json.dumps(value).encode(), **headers)


WAYS = {"application": ask, "connection": ask_by_wire}


@pytest.fixture
def inference() -> FakeInference:
    return FakeInference()


@pytest.fixture
def admin() -> FakeAdmin:
    return FakeAdmin()


@pytest.fixture
def way() -> str:
    """How clients reach the server: straight to the application, or through a connection, where the lane may answer."""
    return "application"


@pytest.fixture
def client_with(inference: FakeInference, admin: FakeAdmin, way: str) -> Callable[..., Client]:
    """Makes a client for options."""
    return lambda **options: Client(build_app(inference, admin, HttpOptions(**options)), WAYS[way])


@pytest.fixture
def client(client_with: Callable[..., Client]) -> Client:
    return client_with()


@pytest.fixture(scope="session")
def any_client() -> Client:
    """A client that all tests share: for requests that leave nothing behind."""
    return Client(build_app(FakeInference(), FakeAdmin(), HttpOptions()))


@pytest.fixture
def connect() -> Callable[[Any], tuple[HttpProtocol, Wire]]:
    """Makes a connection to an application, without a socket."""
    return connected
