"""Requests as clients send them, right and wrong ones: what the whole server answers, and that it goes on."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

from inputs.conftest import Serve
from inputs.live import LiveServer, Reply, request
from inputs.models import VALUE, config, copy, held
from inputs.repository import model
from inputs.waiting import running

TYPES = ("FP32", "FP64", "INT8", "UINT8", "INT32", "INT64", "BYTES", "FP16", "BF16", "BOOL")
ODD_NUMBERS = VALUE.replace("[{value}]", "[1.0, np.nan, np.inf, -np.inf]")
MIB = 1 << 20


def name_of(datatype: str) -> str:
    return f"copy_{datatype.lower()}"


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    files: dict[str, str | bytes] = {}
    for datatype in TYPES:
        files |= model(name_of(datatype), copy("STRING" if datatype == "BYTES" else datatype))
    files |= model("odd", {"config.pbtxt": config(), "1/model.py": ODD_NUMBERS})
    two = {f"{version}/model.py": VALUE.format(value=version) for version in (1, 2)}
    files |= model("two", {"config.pbtxt": config(more="version_policy: { all { }}"), **two})
    return shared(files)


@pytest.fixture(autouse=True)
def _goes_on(server: LiveServer) -> Iterator[None]:
    """Whatever a test sends, the server lives and answers the next request."""
    yield
    assert server.output("copy_fp32", [1.5]) == [1.5]


def send(server: LiveServer, tensor: Mapping[str, Any], tail: bytes = b"", header: object = None) -> Reply:
    """A request whose JSON is followed by bytes. `header` None sends the true length of the JSON, "" no header."""
    text = json.dumps({"inputs": [tensor]}).encode()
    length = len(text) if header is None else header
    headers = {} if length == "" else {"Inference_Header_Content_Length": str(length)}
    return server.post(f"/v2/models/{name_of(tensor['datatype'])}/infer", text + tail, **headers)


def binary(size: object, datatype: str = "FP32", shape: Any = (2,)) -> dict[str, Any]:
    return {"name": "X", "datatype": datatype, "shape": list(shape), "parameters": {"binary_data_size": size}}


def test_numbers_that_json_does_not_have(server: LiveServer) -> None:
    body = server.infer("odd", [0]).body
    (output,) = json.loads(body, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))["outputs"]
    assert output["data"] == [1.0, None, None, None]
    reply = server.infer("odd", [0], outputs=[{"name": "Y", "parameters": {"binary_data": True}}])
    np.testing.assert_array_equal(np.frombuffer(reply.body[-16:], np.float32), [1.0, np.nan, np.inf, -np.inf])
    assert server.output("copy_fp32", [None, 1]) == [None, 1.0]
    assert "null" in server.infer("copy_int32", [None], "INT32").error


@pytest.mark.parametrize(
    "datatype, data, words",
    [
        ("UINT8", [1, 256], ["element 1", "256"]),
        ("INT8", [200], ["element 0", "200"]),
        ("INT32", [[3000000000]], ["element 0", "3000000000"]),
        ("UINT8", [1.5], ["element 0", "UINT8", "1.5"]),
        ("UINT8", [1.0], ["element 0", "UINT8"]),
        ("UINT8", ["a"], ["element 0", "UINT8", "'a'"]),
        ("FP16", [1], ["FP16", "binary"]),
        ("BF16", [1], ["BF16", "binary"]),
        ("BYTES", [{"b64": "AA=="}], ["element 0", "an object"]),
    ],
)
def test_wrong_elements(server: LiveServer, datatype: str, data: list[Any], words: list[str]) -> None:
    reply = server.infer(name_of(datatype), data, datatype)
    assert reply.status == 400
    for word in [name_of(datatype), "'X'", *words]:
        assert word in reply.error


@pytest.mark.parametrize("datatype", ["FP16", "BF16"])
def test_a_half_as_output_needs_binary(server: LiveServer, datatype: str) -> None:
    reply = send(server, binary(4, datatype), b"\0\1\0\2")
    assert reply.status == 400
    assert "'Y'" in reply.error
    assert "binary" in reply.error


def test_halves_travel_as_numbers_where_that_is_switched_on(serve: Serve) -> None:
    server = serve(model("m", copy("FP16")), "--http-json-halves=true")
    assert server.infer("m", [1.5, 0.1], "FP16").json["outputs"][0]["data"] == pytest.approx([1.5, 0.1], rel=1e-3)


def test_few_digits(server: LiveServer) -> None:
    assert b'"data":[0.1,1e-45]' in server.infer("copy_fp32", [0.1, 1e-45]).body


def test_binary_data_behind_the_json(server: LiveServer) -> None:
    reply = send(server, binary(8), struct.pack("<2f", 1, -2))
    assert reply.status == 200
    assert reply.json["outputs"][0]["data"] == [1, -2]


@pytest.mark.parametrize("header", ["", -1, "text", 10**6, 10**30, 3, "0x10", "1.0"])
def test_wrong_lengths_of_the_json(server: LiveServer, header: object) -> None:
    assert send(server, binary(8), struct.pack("<2f", 1, -2), header).status == 400


@pytest.mark.parametrize(
    "size, tail, words",
    [(12, 8, ["12", "8 bytes"]), (8, 12, ["4 bytes at the end"]), (4, 4, ["4 bytes", "8"]), ("8", 8, ["8"])],
)
def test_wrong_sizes_of_binary_data(server: LiveServer, size: object, tail: int, words: list[str]) -> None:
    reply = send(server, binary(size), bytes(tail))
    assert reply.status == 400
    assert all(word in reply.error for word in words)


def test_texts(server: LiveServer) -> None:
    reply = send(server, binary(6, "BYTES", [1]), b"\2\0\0\0hi")
    assert reply.json["outputs"][0]["data"] == ["hi"]
    assert server.infer("copy_bytes", ["héllo"], "BYTES").json["outputs"][0]["data"] == ["héllo"]
    asked: dict[str, Any] = {"outputs": [{"name": "Y", "parameters": {"binary_data": True}}]}
    assert server.infer("copy_bytes", ["héllo"], "BYTES", **asked).body.endswith(b"\6\0\0\0h\xc3\xa9llo")


@pytest.mark.parametrize("data", [b"\x09\0\0\0hi", b"\2\0\0", b"\2\0\0\0hi\1", b"\xff\xff\xff\xff"])
def test_texts_that_are_cut_off(server: LiveServer, data: bytes) -> None:
    reply = send(server, binary(len(data), "BYTES", [1]), data)
    assert reply.status == 400
    assert "'X'" in reply.error


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


GOOD = request([1, 2])
TENSOR = {"name": "X", "datatype": "FP32", "shape": [2], "data": [1, 2]}
WRONG: list[dict[str, Any]] = [
    {"shape": "-1"}, {"shape": [-1]}, {"shape": [2**62, 8]}, {"shape": [2**63]}, {"shape": [1]}, {"shape": [3]},
    {"shape": []}, {"shape": [2.0]}, {"shape": None}, {"datatype": "STRING"}, {"datatype": "fp32"}, {"datatype": 1},
    {"data": [1]}, {"data": [1, 2, 3]}, {"data": [{"b64": "AA=="}, 1]}, {"data": "12"}, {"data": None}, {"name": "Z"},
    {"name": None}, {"parameters": []}, {"shape": [0, 2**40, 2**40]},
]  # fmt: skip
BODIES: list[bytes | Mapping[str, Any]] = [
    b"", b"[]", b"{}", b"null", b"hello", b'{"inputs": [', b'{"inputs": {}}', b"\xff\xfe", nested(101), nested(100_000),
    b'{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": ' + nested(101) + b"}]}",
    b'{"inputs": [{"name": "X", "datatype": "FP32", "shape": [1], "data": [NaN]}]}',
    *({"inputs": [{**TENSOR, **wrong}]} for wrong in WRONG),
    {"inputs": [TENSOR, TENSOR]},
    {"inputs": []},
    {**GOOD, "outputs": [{"name": "Z"}]},
    {**GOOD, "outputs": {}},
    {**GOOD, "id": 5},
    {**GOOD, "parameters": [1]},
]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_bad_requests_are_the_clients_mistake(server: LiveServer, body: Any) -> None:
    reply = server.post("/v2/models/copy_fp32/infer", body)
    assert reply.status == 400
    assert "copy_fp32" in reply.error


def test_a_body_over_the_limit_names_the_flag(server: LiveServer) -> None:
    count = 16 * MIB + 1
    reply = send(server, binary(4 * count, shape=[count]), bytes(4 * count))
    assert reply.status in (400, 413)
    assert "--http-max-input-size" in reply.error


def test_forty_megabytes_over_grpc(server: LiveServer) -> None:
    data = np.zeros(10 * MIB, np.float32)
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        given = tritonclient.grpc.InferInput("X", list(data.shape), "FP32")
        given.set_data_from_numpy(data)
        assert client.infer("copy_fp32", [given]).as_numpy("Y").nbytes == 40 * MIB


def grpc_status(server: LiveServer, name: str, version: str = "") -> tuple[str, str]:
    """Code and message of the official client's failed request."""
    with tritonclient.grpc.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:
        given = tritonclient.grpc.InferInput("X", [1], "FP32")
        given.set_data_from_numpy(np.zeros(1, np.float32))
        with pytest.raises(InferenceServerException) as caught:
            client.infer(name, [given], version)
    return caught.value.status(), caught.value.message()


def test_an_unknown_model_is_not_found(server: LiveServer) -> None:
    reply = server.infer("nobody", [1])
    assert reply.status == 404
    assert "nobody" in reply.error
    code, message = grpc_status(server, "nobody")
    assert code == "StatusCode.NOT_FOUND"
    assert "nobody" in message


def test_a_version_that_is_gone_is_unavailable(serve: Serve) -> None:
    server = serve({**model("m", copy()), **model("never", copy())}, "--model-control-mode=explicit", "--load-model=m")
    assert server.unload("m").status == 200
    wanted = {"1": (503, "StatusCode.UNAVAILABLE"), "": (404, "StatusCode.NOT_FOUND"), "7": (404, "StatusCode.NOT_FOUND")}
    for version, statuses in wanted.items():
        reply = server.infer("m", [1], version=version)
        code, message = grpc_status(server, "m", version)
        assert (reply.status, code) == statuses, version
        for text in (reply.error, message):
            assert "'m'" in text
            assert version in text
    assert "unloaded" in server.infer("m", [1]).error
    assert server.infer("never", [1]).status == 404


def test_a_version_that_is_loading_is_unavailable(serve: Serve, tmp_path: Path) -> None:
    server = serve(None, "--model-control-mode=explicit")
    server.add("slow", {"config.pbtxt": config(), "1/model.py": held(tmp_path, initialize="go")})
    with running(lambda: server.load("slow"), tmp_path / "go"):
        reply = server.infer("slow", [1], version="1")
        assert reply.status == 503
        assert "slow" in reply.error
        assert grpc_status(server, "slow", "1")[0] == "StatusCode.UNAVAILABLE"
    assert server.output("slow", [1]) == [1]


def test_versions_in_the_path(server: LiveServer) -> None:
    assert server.output("two") == [2]
    assert {tuple(server.output("two", version="1")) for _ in range(100)} == {(1,)}
    assert server.infer("two", [0], version="-1").status == 404
    assert server.infer("two", [0], version="3").status == 404
    with tritonclient.http.InferenceServerClient(f"127.0.0.1:{server.ports[0]}") as client:
        given = tritonclient.http.InferInput("X", [1], "FP32")
        given.set_data_from_numpy(np.zeros(1, np.float32))
        answers = [client.infer("two", [given], version).as_numpy("Y").tolist() for version in ("", "1", "2")]
    assert answers == [[2], [1], [2]]
