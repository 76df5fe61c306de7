"""The infer endpoint: the same answers from the application and from a connection, where small requests take the lane."""

import asyncio
import gzip
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage._server.http import HttpOptions, build_app, disconnects
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import Internal, ModelError, NotFound, Unavailable
from moorage.types import DataType, InferResponse, Tensor

PATH = "/v2/models/ident/infer"
PART = {"name": "X", "datatype": "INT32", "shape": [2], "data": [1, 2]}
BODY = {"inputs": [PART]}


@pytest.fixture(params=["application", "connection"])
def way(request: pytest.FixtureRequest) -> str:
    given: str = request.param
    return given


def with_binary(*, output: bool = True) -> tuple[bytes, dict[str, str]]:
    part = {"name": "X", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [part], "parameters": {"binary_data_output": output}}).encode()
    return text + struct.pack("<2i", 1, 2), {"inference_header_content_length": str(len(text))}


async def test_json(client: Any, inference: Any) -> None:
    answer = await client.post("/v2/models/ident/versions/02/infer", BODY | {"id": "r"}, content_type="text/plain")
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.json == {"id": "r", "model_name": "ident", "model_version": "2", "outputs": [PART]}
    assert inference.seen[0].model_version == 2


async def test_binary(client: Any) -> None:
    body, headers = with_binary()
    answer = await client.ask("POST", PATH, body, **headers)
    assert answer.headers["content-type"] == "application/octet-stream"
    at = int(answer.headers["inference-header-content-length"])
    assert json.loads(answer.body[:at])["outputs"][0]["parameters"] == {"binary_data_size": 8}
    assert answer.body[at:] == struct.pack("<2i", 1, 2)


async def test_chunked_body(client: Any) -> None:
    text = json.dumps(BODY).encode()
    answer = await client.ask("POST", PATH, [text[i : i + 7] for i in range(0, len(text), 7)])
    assert answer.json["outputs"] == [PART]


@pytest.mark.parametrize("way", ["application"])  # on a connection, a wrong length makes something else of what follows
async def test_announced_body_in_pieces(client: Any) -> None:
    body, headers = with_binary(output=False)
    pieces = [body[i : i + 50] for i in range(0, len(body), 50)]
    good = await client.ask("POST", PATH, pieces, content_length=str(len(body)), **headers)
    assert good.json["outputs"] == [PART]
    for wrong in (len(body) - 60, len(body) - 1, len(body) + 1):
        assert (await client.ask("POST", PATH, pieces, content_length=str(wrong), **headers)).status == 400


@pytest.mark.parametrize("value", ["-1", "x", "1.0", "100000", "9" * 30, ""])
async def test_wrong_header_lengths(client: Any, value: str) -> None:
    body, _ = with_binary()
    answer = await client.ask("POST", PATH, body, inference_header_content_length=value)
    assert answer.status == 400
    assert "ident" in answer.json["error"]


async def test_binary_without_the_header(client: Any) -> None:
    answer = await client.ask("POST", PATH, with_binary()[0])
    assert answer.status == 400


@pytest.mark.parametrize("body", [b"", b"hello", b"[]", b"{}", b'{"inputs": ['])
async def test_malformed_bodies_name_the_model(client: Any, inference: Any, body: bytes) -> None:
    answer = await client.ask("POST", PATH, body)
    assert answer.status == 400
    assert "'ident'" in answer.json["error"]
    assert not inference.seen


async def test_raw_request(client: Any, admin: Any) -> None:
    admin.config = ModelConfig(name="ident", input=(ModelInput(name="X", data_type=DataType.FP32, dims=(-1,)),))
    answer = await client.ask("POST", PATH, struct.pack("<2f", 1, 2), inference_header_content_length="0")
    assert answer.body.endswith(struct.pack("<2f", 1, 2))
    unknown = await client.ask("POST", "/v2/models/other/infer", b"1234", inference_header_content_length="0")
    assert unknown.status == 404


@pytest.mark.parametrize(
    "error,status", [(NotFound("gone"), 404), (Unavailable("full"), 503), (ModelError("thrown"), 500), (Internal("ours"), 500)]
)
async def test_errors_of_the_service(client: Any, inference: Any, error: Exception, status: int) -> None:
    def fail(_: Any) -> InferResponse:
        raise error

    inference.answer = fail
    answer = await client.post(PATH, BODY)
    assert (answer.status, answer.json) == (status, {"error": str(error)})


async def test_an_error_in_the_response(client: Any, inference: Any) -> None:
    inference.answer = lambda _: InferResponse([], error=ModelError("tripped"))
    answer = await client.post(PATH, BODY)
    assert (answer.status, answer.json) == (500, {"error": "tripped"})


async def test_an_unexpected_error_is_logged(client: Any, inference: Any, caplog: pytest.LogCaptureFixture) -> None:
    inference.answer = lambda _: 1 / 0
    answer = await client.post(PATH, BODY)
    assert answer.status == 500
    assert "ZeroDivisionError" in caplog.text


async def test_an_output_without_json_form_is_the_clients_mistake(client: Any, inference: Any) -> None:
    half = Tensor("H", DataType.FP16, np.ones(1, dtype=np.float16))
    inference.answer = lambda _: InferResponse([half])
    answer = await client.post(PATH, BODY)
    assert answer.status == 400
    assert all(word in answer.json["error"] for word in ("ident", "H", "binary"))
    assert (await client.post(PATH, BODY | {"parameters": {"binary_data_output": True}})).status == 200


async def test_headers_become_parameters(client_with: Callable[..., Any], inference: Any) -> None:
    client = client_with(header_forward_pattern="my-.*")
    await client.post(PATH, BODY, my_colour="blue", not_my_shape="round", other="no")
    assert inference.seen[0].parameters == {"my-colour": "blue", "not-my-shape": "round"}


async def test_reserved_headers_are_not_forwarded(client_with: Callable[..., Any]) -> None:
    client = client_with(header_forward_pattern=".*")
    answer = await client.post(PATH, BODY, priority="1")
    assert answer.status == 400
    assert "priority" in answer.json["error"]


@pytest.mark.parametrize(
    "coding,pack", [("gzip", gzip.compress), ("deflate", zlib.compress), ("GZIP , identity", gzip.compress)]
)
async def test_compressed_requests(client: Any, coding: str, pack: Callable[[bytes], bytes]) -> None:
    body, headers = with_binary(output=False)
    answer = await client.ask("POST", PATH, pack(body), content_encoding=coding, **headers)
    assert answer.json["outputs"] == [PART]


async def test_wrong_compression(client: Any) -> None:
    assert (await client.post(PATH, BODY, content_encoding="br")).status == 501
    broken = await client.ask("POST", PATH, b"this is no gzip", content_encoding="gzip")
    assert broken.status == 400
    assert "ident" in broken.json["error"]


@pytest.mark.parametrize("accept,coding,unpack", [("gzip", "gzip", gzip.decompress), ("deflate", "deflate", zlib.decompress)])
async def test_compressed_responses(client: Any, accept: str, coding: str, unpack: Callable[[bytes], bytes]) -> None:
    answer = await client.post(PATH, BODY, accept_encoding=accept)
    assert answer.headers["content-encoding"] == coding
    assert json.loads(unpack(answer.body))


async def test_only_inference_results_are_compressed(client: Any) -> None:
    for method, path, body in (
        ("GET", "/v2/models/ident/config", b""),
        ("GET", "/v2/health/live", b""),
        ("GET", "/v2/nothing", b""),
        ("POST", PATH, b"{"),
    ):
        answer = await client.ask(method, path, body, accept_encoding="gzip, deflate")
        assert "content-encoding" not in answer.headers
        assert not answer.body or answer.json


async def test_too_large_bodies_name_the_flag(client_with: Callable[..., Any], inference: Any) -> None:
    client = client_with(max_input_size=200)
    large = json.dumps({"inputs": [], "pad": "x" * 300}).encode()
    answers = [
        await client.ask("POST", PATH, large),
        await client.ask("POST", PATH, [large[:100], large[100:]]),
        await client.ask("POST", PATH, gzip.compress(large), content_encoding="gzip"),
        await client.ask("POST", "/v2/repository/models/ident/load", large),
    ]
    for answer in answers:
        assert answer.status == 413
        assert "--http-max-input-size" in answer.json["error"]
    assert not inference.seen


async def test_a_refused_expectation_closes_the_connection(client_with: Callable[..., Any]) -> None:
    client = client_with(max_input_size=10)
    answer = await client.ask("POST", PATH, b"x" * 20, expect="100-continue")
    assert (answer.status, answer.headers["connection"]) == (413, "close")


async def test_a_client_that_goes_away_cancels_its_request(inference: Any, admin: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disconnects, "_LOOK_EVERY_SECONDS", 0.001)
    inference.wait = asyncio.Event()
    app = build_app(inference, admin, HttpOptions())
    body = json.dumps(BODY).encode()
    messages: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}, {"type": "http.disconnect"}]
    heard = asyncio.Event()

    async def receive() -> dict[str, Any]:
        message = messages.pop(0)
        if not messages:
            heard.set()
        return message

    async def send(message: Any) -> None: ...

    scope = {"type": "http", "method": "POST", "path": PATH, "raw_path": PATH.encode(), "headers": []}
    task = asyncio.create_task(app(scope, receive, send))
    await asyncio.wait_for(heard.wait(), 5)
    await asyncio.sleep(0)
    assert inference.seen[0].cancelled
    inference.wait.set()
    await task
