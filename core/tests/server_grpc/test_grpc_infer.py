from __future__ import annotations

import threading
from typing import Any

import grpc
import numpy as np
import pytest

from moorage.errors import ModelError
from moorage.types import InferResponse

ONE = np.array([1], "<i4")


def test_echo_keeps_id_names_types_shapes_and_data(client: Any, inference: Any) -> None:
    request = client.request("echo", A=np.arange(6, dtype="<i4").reshape(2, 3), B=np.array([0.5], "<f4"))
    request.id = "g-9"
    request.model_version = "1"

    response = client.stub.ModelInfer(request)

    assert (response.model_name, response.model_version, response.id) == ("echo", "1", "g-9")
    assert [(o.name, o.datatype, list(o.shape)) for o in response.outputs] == [("A", "INT32", [2, 3]), ("B", "FP32", [1])]
    assert list(response.raw_output_contents) == list(request.raw_input_contents)
    assert not response.parameters
    assert inference.seen[0].model_version == 1


def test_large_tensors_pass(client: Any) -> None:
    array = np.arange(10_000_000, dtype="<i4")

    response = client.stub.ModelInfer(client.request("echo", A=array, B=ONE))

    assert np.array_equal(np.frombuffer(response.raw_output_contents[0], "<i4"), array)
    assert response.raw_output_contents[1] == ONE.tobytes()


def test_typed_contents_arrive(client: Any, inference: Any) -> None:
    request = client.pb.ModelInferRequest(model_name="echo")
    request.inputs.add(name="T", datatype="BYTES", shape=[2]).contents.bytes_contents.extend([b"plain", b"\0\xff"])

    response = client.stub.ModelInfer(request)

    assert response.raw_output_contents[0] == b"\5\0\0\0plain\2\0\0\0\0\xff"


def test_requested_outputs_and_parameters_reach_the_service(client: Any, inference: Any) -> None:
    request = client.request("echo", A=ONE)
    request.outputs.add(name="A").parameters["classification"].int64_param = 2
    request.parameters["colour"].string_param = "red"
    request.parameters["ratio"].double_param = 0.5
    request.parameters["big"].uint64_param = 2**64 - 1
    request.parameters["keen"].bool_param = True
    request.parameters["sequence_id"].string_param = "s"
    request.parameters["sequence_start"].bool_param = True
    request.parameters["sequence_end"].bool_param = True
    request.parameters["priority"].uint64_param = 3
    request.parameters["timeout"].int64_param = 1500

    client.stub.ModelInfer(request)

    seen = inference.seen[0]
    assert (seen.outputs[0].name, seen.outputs[0].classification) == ("A", 2)
    assert seen.parameters == {"colour": "red", "ratio": 0.5, "big": 2**64 - 1, "keen": True}
    assert (seen.correlation_id, seen.sequence_start, seen.sequence_end) == ("s", True, True)
    assert (seen.priority, seen.timeout_us) == (3, 1500)


def test_response_parameters_arrive(client: Any) -> None:
    found = client.stub.ModelInfer(client.request("annotated")).parameters

    assert (found["text"].string_param, found["small"].int64_param, found["ratio"].double_param) == ("t", -4, 0.5)
    assert (found["number"].uint64_param, found["flag"].bool_param) == (2**63, True)


@pytest.mark.parametrize(
    "model,version,inputs,code,words",
    [
        ("nobody", "", {}, "NOT_FOUND", "nobody"),
        ("echo", "7", {"A": ONE}, "NOT_FOUND", "echo"),
        ("echo", "one", {}, "INVALID_ARGUMENT", "echo"),
        ("echo", "", {"FULL": ONE}, "UNAVAILABLE", "queue"),
        ("boom", "", {"A": ONE}, "INTERNAL", "bang"),
        ("mute", "", {"A": ONE}, "INTERNAL", "mute"),
        ("counter", "", {"COUNT": ONE}, "UNIMPLEMENTED", "ModelStreamInfer"),
        ("stumbler", "", {}, "UNIMPLEMENTED", "stumbler"),
    ],
)
def test_errors_are_statuses(
    client: Any, model: str, version: str, inputs: dict[str, np.ndarray], code: str, words: str
) -> None:
    request = client.request(model, **inputs)
    request.model_version = version

    status, details = client.error(client.stub.ModelInfer, request)

    assert status == code
    assert words in details


def test_a_message_that_does_not_parse_is_the_clients_mistake(client: Any) -> None:
    call = client.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    assert client.error(call, b"\x0a\xff")[0] == "INVALID_ARGUMENT"
    assert client.error(call, b"\x0a\xff" + bytes(100_000))[0] == "INVALID_ARGUMENT"


def test_no_message_is_the_clients_mistake(client: Any) -> None:
    call = client.channel.stream_unary("/inference.GRPCInferenceService/ModelInfer")

    assert client.error(call, iter(()))[0] == "INVALID_ARGUMENT"


def test_long_errors_fit_into_trailers(client: Any, inference: Any) -> None:
    def long(_request: Any, sink: Any) -> None:
        from moorage.errors import ModelError

        sink.fail(ModelError("ä\n" * 20_000))

    inference.add("verbose", long)

    code, details = client.error(client.stub.ModelInfer, client.request("verbose"))

    assert code == "INTERNAL"
    assert details.startswith("ä\nä\n")
    assert details.endswith("(cut)")


def test_a_slow_model_holds_up_nobody(client: Any, gate: Any) -> None:
    waiting = [client.stub.ModelInfer.future(client.request("slow", A=ONE)) for _ in range(3)]
    assert gate.entered.wait(10)

    assert client.stub.ModelInfer(client.request("echo", A=ONE), timeout=10).model_name == "echo"
    assert client.stub.ServerLive(client.pb.ServerLiveRequest(), timeout=10).live

    gate.opened.set()
    assert all(call.result(10).model_name == "slow" for call in waiting)


@pytest.mark.parametrize("how", ["deadline", "cancel"])
def test_a_client_that_gives_up_marks_its_request(client: Any, inference: Any, gate: Any, how: str) -> None:
    cancelled = threading.Event()

    def watch(request: Any, sink: Any) -> None:
        gate.entered.set()
        while not request.cancelled and not gate.opened.wait(0.005):
            pass
        sink.complete()
        if request.cancelled:
            cancelled.set()

    inference.add("watched", watch)
    call = client.stub.ModelInfer.future(client.request("watched", A=ONE), timeout=0.2 if how == "deadline" else 30)
    assert gate.entered.wait(10)
    if how == "cancel":
        call.cancel()

    assert cancelled.wait(10)
    assert client.stub.ModelInfer(client.request("echo", A=ONE)).model_name == "echo"


def test_many_calls_at_once(client: Any) -> None:
    arrays = [np.full(8, number, "<i4") for number in range(300)]

    calls = [client.stub.ModelInfer.future(client.request("echo", A=array)) for array in arrays]

    for array, call in zip(arrays, calls, strict=True):
        assert call.result(20).raw_output_contents[0] == array.tobytes()


def test_compressed_requests_are_read_and_responses_compressed(connect: Any) -> None:
    client = connect(compression="high")
    array = np.zeros(100_000, "<i4")

    response = client.stub.ModelInfer(client.request("echo", A=array), compression=grpc.Compression.Gzip)

    assert response.raw_output_contents[0] == array.tobytes()


def test_matching_metadata_become_parameters(connect: Any, inference: Any) -> None:
    client = connect(header_forward_pattern="my-.*")
    metadata = [("my-colour", "blue"), ("also-my-own", "x"), ("other", "no"), ("my-blob-bin", b"\0")]

    client.stub.ModelInfer(client.request("echo", A=ONE), metadata=metadata)

    assert inference.seen[0].parameters == {"my-colour": "blue", "also-my-own": "x"}


def test_a_response_that_protobuf_cannot_carry_is_no_answer_lost(client: Any, inference: Any) -> None:
    def too_large(request: Any, sink: Any) -> None:
        response = InferResponse([], parameters={"size": 2**70}, model_name="large", model_version=1)
        try:
            sink.send(response, final=True)
        except Exception as error:  # as the inference service does
            sink.fail(ModelError(f"model 'large': {error}"))

    inference.add("large", too_large)
    with pytest.raises(grpc.RpcError) as caught:
        client.stub.ModelInfer(client.request("large", A=ONE), timeout=10)
    assert caught.value.code() is grpc.StatusCode.INTERNAL
    assert "model 'large'" in str(caught.value.details())
