"""The generate endpoints over ASGI."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage._server.http import HttpOptions, build_app, parse_restricted
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import ModelError, Unavailable
from moorage.types import DataType, InferRequest, InferResponse, Sink, Tensor

GENERATE = "/v2/models/ident/generate"
STREAM = "/v2/models/ident/generate_stream"
NAMED = {"model_name": "ident", "model_version": "1"}

Model = Callable[[InferRequest, Sink], None]


def answer(**outputs: Any) -> InferResponse:
    tensors = [Tensor(name, datatype, np.array(value)) for name, (datatype, value) in outputs.items()]
    return InferResponse(tensors, model_name="ident", model_version=1)


def echo(request: InferRequest, sink: Sink) -> None:
    sink.send(InferResponse(list(request.inputs.values()), model_name="ident", model_version=1), final=True)


def count_to_three(_request: InferRequest, sink: Sink) -> None:
    for number in range(3):
        sink.send(answer(N=(DataType.INT32, [number])), final=False)
    sink.complete()


def nothing(_request: InferRequest, sink: Sink) -> None:
    sink.complete()


def failing(_request: InferRequest, sink: Sink) -> None:
    sink.fail(ModelError("model 'ident' fell"))


def stumbling(_request: InferRequest, sink: Sink) -> None:
    sink.send(answer(N=(DataType.INT32, [1])), final=False)
    sink.send(InferResponse([], error=ModelError("model 'ident' fell")), final=True)


def refusing(_request: InferRequest, _sink: Sink) -> None:
    raise Unavailable("model 'ident' is full")


class Inference:
    """Has requests answered by a function."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.seen: list[InferRequest] = []

    def submit(self, request: InferRequest, sink: Sink, *, unary: bool = False) -> None:
        self.seen.append(request)
        self._model(request, sink)

    def start(self, request: InferRequest, answered: Callable[[Any], None]) -> None:
        raise NotImplementedError

    async def infer(self, request: InferRequest) -> InferResponse:
        raise NotImplementedError


@pytest.fixture
def client_of(client: Any, admin: Any) -> Callable[..., tuple[Any, Inference]]:
    """Makes a client for a model that answers as the function does."""
    admin.config = ModelConfig(
        name="ident",
        max_batch_size=4,
        input=(
            ModelInput(name="X", data_type=DataType.FP32, dims=(-1, 2)),
            ModelInput(name="text", data_type=DataType.BYTES, dims=(1,), optional=True),
        ),
    )

    def make(model: Model = echo, **options: Any) -> tuple[Any, Inference]:
        inference = Inference(model)
        client.app = build_app(inference, admin, HttpOptions(**options))
        return client, inference

    return make


def events(body: bytes) -> list[Any]:
    *parts, rest = body.decode().split("\n\n")
    assert rest == ""
    return [json.loads(part.removeprefix("data: ")) for part in parts]


async def test_inputs_parameters_and_id(client_of: Any) -> None:
    client, inference = client_of()
    body = {"id": "r", "X": [1, 2.5], "tone": "loud", "parameters": {"text": "ho", "level": 3, "deep": True}}
    got = await client.post(GENERATE, body)
    assert (got.status, got.headers["content-type"]) == (200, "application/json")
    assert got.json == NAMED | {"id": "r", "X": [1.0, 2.5], "text": "ho"}
    (request,) = inference.seen
    assert request.parameters == {"id": "r", "tone": "loud", "level": 3, "deep": True}
    assert {name: tensor.array.shape for name, tensor in request.inputs.items()} == {"X": (1, 1, 2), "text": (1, 1)}


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ("[]", "object"),
        ('{"X": [1, 2, 3]}', r"3 elements.*\[-1, -1, 2\]"),
        ('{"X": ["a", "b"]}', "number"),
        ('{"X": [[1, 2], [3, 4]]}', "X"),
        ('{"X": [1, 2], "parameters": {"X": [1, 2]}}', "twice"),
        ('{"parameters": 5}', "must be an object"),
        ('{"id": 5}', "must be a string"),
        ('{"other": [1]}', "other"),
        ('{"other": null}', "other"),
        ('{"triton_x": 1}', "reserved"),
    ],
)
@pytest.mark.parametrize("path", [GENERATE, STREAM])
async def test_what_is_wrong_is_400_in_json(client_of: Any, path: str, body: str, word: str) -> None:
    client, inference = client_of()
    got = await client.ask("POST", path, body.encode())
    assert (got.status, got.headers["content-type"], inference.seen) == (400, "application/json", [])
    assert re.search(f"ident.*{word}", got.json["error"])


@pytest.mark.parametrize("path", [GENERATE, STREAM])
async def test_a_refused_request_is_an_error_in_json(client_of: Any, path: str) -> None:
    client, _ = client_of(refusing)
    got = await client.post(path, {})
    assert (got.status, got.headers["content-type"]) == (503, "application/json")
    assert got.json == {"error": "model 'ident' is full"}
    assert (await client.post(path.replace("ident", "other"), {})).status == 404


async def test_each_response_is_an_event(client_of: Any) -> None:
    client, _ = client_of(count_to_three)
    got = await client.post(STREAM, {"id": "s"}, accept_encoding="gzip")
    assert (got.status, got.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert events(got.body) == [NAMED | {"id": "s", "N": number} for number in range(3)]


@pytest.mark.parametrize(
    ("model", "status", "expected"),
    [
        (nothing, 200, []),
        (failing, 500, [{"error": "model 'ident' fell"}]),
        (stumbling, 200, [NAMED | {"N": 1}, {"error": "model 'ident' fell"}]),
    ],
)
async def test_the_first_event_gives_the_status(client_of: Any, model: Model, status: int, expected: list[Any]) -> None:
    client, _ = client_of(model)
    got = await client.post(STREAM, {})
    assert (got.status, events(got.body)) == (status, expected)


@pytest.mark.parametrize(
    ("model", "status", "word"),
    [(nothing, 200, "none"), (count_to_three, 200, "3"), (failing, 500, "fell"), (stumbling, 200, "2")],
)
async def test_generate_takes_exactly_one_response(client_of: Any, model: Model, status: int, word: str) -> None:
    client, _ = client_of(model)
    got = await client.post(GENERATE, {})
    assert (got.status, word in got.json["error"]) == (status, True)


async def test_an_output_without_json_form(client_of: Any) -> None:
    def half(_request: InferRequest, sink: Sink) -> None:
        sink.send(answer(H=(DataType.FP16, np.ones(1, np.float16))), final=True)

    client, _ = client_of(half)
    assert (await client.post(GENERATE, {})).status == 400
    got = await client.post(STREAM, {})
    assert (got.status, "FP16" in events(got.body)[0]["error"]) == (400, True)
    client, _ = client_of(half, json_halves=True)
    assert (await client.post(GENERATE, {})).json == NAMED | {"H": 1.0}


async def test_parameters_of_a_response_stand_beside_its_outputs(client_of: Any) -> None:
    def telling(_request: InferRequest, sink: Sink) -> None:
        response = answer(N=(DataType.INT64, [[1], [2]]), E=(DataType.INT64, []))
        response.parameters = {"tokens": 7, "model_name": "mine"}
        sink.send(response, final=True)

    client, _ = client_of(telling)
    assert (await client.post(GENERATE, {})).json == NAMED | {"N": [1, 2], "E": [], "tokens": 7}


async def test_events_go_out_as_they_come(client_of: Any) -> None:
    """The second response is only made when the first has reached the client."""
    reached = threading.Event()
    threads: list[threading.Thread] = []

    def slow(_request: InferRequest, sink: Sink) -> None:
        def run() -> None:
            sink.send(answer(N=(DataType.INT32, [1])), final=False)
            sink.send(answer(N=(DataType.INT32, [2 if reached.wait(5) else -1])), final=True)

        threads.append(threading.Thread(target=run))
        threads[0].start()

    client, _ = client_of(slow)
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        if body := message.get("body"):
            sent.append(body)
            reached.set()

    scope = {"type": "http", "method": "POST", "path": STREAM, "raw_path": STREAM.encode(), "headers": []}
    await client.app(scope, _receiver(b"{}"), send)
    threads[0].join(5)
    assert [event["N"] for event in events(b"".join(sent))] == [1, 2]


def _receiver(body: bytes) -> Callable[[], Any]:
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        return None

    return receive


async def test_a_client_that_goes_away_cancels(client_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage._server.http.disconnects._LOOK_EVERY_SECONDS", 0.001)
    held: list[Sink] = []
    client, inference = client_of(lambda _request, sink: held.append(sink))
    messages: list[Any] = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"", "more_body": False}]
    heard = asyncio.Event()

    async def receive() -> Any:
        if len(messages) == 1:
            asyncio.get_running_loop().call_soon(heard.set)
        return messages.pop()

    async def send(_message: Any) -> None: ...

    scope = {"type": "http", "method": "POST", "path": STREAM, "raw_path": STREAM.encode(), "headers": []}
    running = asyncio.ensure_future(client.app(scope, receive, send))
    async with asyncio.timeout(5):
        await heard.wait()
    assert inference.seen[0].cancelled
    held[0].complete()
    await running


async def test_restriction_and_methods(client_of: Any) -> None:
    client, _ = client_of(nothing, restricted=parse_restricted(["inference:key=secret"]))
    assert (await client.post(STREAM, {})).status == 403
    assert (await client.post(STREAM, {}, key="secret")).status == 200
    client, _ = client_of(nothing)
    assert (await client.ask("GET", STREAM)).status == 405
    assert (await client.post("/v2/models/ident/versions/1/generate_stream", {})).status == 200
