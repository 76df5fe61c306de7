from __future__ import annotations

import asyncio
import queue
import threading
import time
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton

ONE = np.array([1], "<i4")


def converse(client: Any, *requests: Any, **options: Any) -> list[Any]:
    return list(client.stub.ModelStreamInfer(iter(requests), timeout=20, **options))


def named(client: Any, model: str, request_id: str, *, empty_final: bool | None = None, **inputs: np.ndarray) -> Any:
    request = client.request(model, **inputs)
    request.id = request_id
    if empty_final is not None:
        request.parameters["triton_enable_empty_final_response"].bool_param = empty_final
    return request


def numbers(count: int) -> np.ndarray:
    return np.array([count], "<i4")


def final(message: Any) -> bool:
    flag = message.infer_response.parameters["triton_final_response"]
    assert flag.WhichOneof("parameter_choice") == "bool_param"
    return bool(flag.bool_param)


def test_a_plain_model_answers_once_and_finally(client: Any) -> None:
    (answer,) = converse(client, named(client, "echo", "one", empty_final=True, A=ONE))

    assert not answer.error_message
    assert (answer.infer_response.id, answer.infer_response.model_version) == ("one", "1")
    assert answer.infer_response.raw_output_contents[0] == ONE.tobytes()
    assert final(answer)


def test_a_decoupled_model_answers_as_often_as_it_likes(client: Any) -> None:
    answers = converse(client, named(client, "counter", "r1", COUNT=numbers(3)))

    assert [a.infer_response.raw_output_contents[0][0] for a in answers] == [0, 1, 2]
    assert [final(a) for a in answers] == [False] * 3
    assert {a.infer_response.id for a in answers} == {"r1"}


@pytest.mark.parametrize("count", [0, 2])
def test_the_empty_final_response_comes_only_when_asked_for(client: Any, count: int) -> None:
    silent = converse(client, named(client, "counter", "r", empty_final=False, COUNT=numbers(count)))
    spoken = converse(client, named(client, "counter", "r", empty_final=True, COUNT=numbers(count)))

    assert len(silent) == count
    assert [final(a) for a in spoken] == [False] * count + [True]
    end = spoken[-1].infer_response
    assert (end.model_name, end.model_version, end.id, len(end.outputs)) == ("counter", "", "r", 0)


def test_errors_are_messages_and_the_stream_goes_on(client: Any) -> None:
    wrong = named(client, "echo", "wrong", A=ONE)
    wrong.inputs[0].shape[0] = 5

    answers = converse(
        client,
        named(client, "nobody", "c"),
        wrong,
        named(client, "echo", "full", FULL=ONE),
        named(client, "echo", "last", A=ONE),
    )

    assert [a.infer_response.id for a in answers] == ["c", "wrong", "full", "last"]
    assert "nobody" in answers[0].error_message
    assert "echo" in answers[1].error_message
    assert "'A'" in answers[1].error_message
    assert not answers[1].infer_response.model_name
    assert not answers[3].error_message


def test_an_error_response_comes_in_its_place(client: Any) -> None:
    good, bad = converse(client, named(client, "stumbler", "z"))

    assert (good.error_message, final(good)) == ("", False)
    assert (bad.error_message, final(bad)) == ("tripped", False)
    assert (bad.infer_response.model_name, bad.infer_response.id) == ("stumbler", "z")


def test_a_failed_request_is_final(client: Any) -> None:
    (answer,) = converse(client, named(client, "boom", "z", A=ONE))

    assert "bang" in answer.error_message
    assert (answer.infer_response.id, final(answer)) == ("z", True)


def test_a_client_may_have_errors_as_status(client: Any) -> None:
    call = client.stub.ModelStreamInfer(iter((named(client, "nobody", "c"),)), metadata=[("triton_grpc_error", "true")])

    assert client.error(list, call)[0] == "NOT_FOUND"


def test_a_stream_without_requests_ends_well(client: Any) -> None:
    assert converse(client) == []


def test_a_message_that_does_not_parse_is_answered(client: Any) -> None:
    call = client.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")

    (answer,) = [client.pb.ModelStreamInferResponse.FromString(data) for data in call(iter((b"\x0a\xff",)))]

    assert answer.error_message


def test_many_requests_are_in_flight_and_each_keeps_its_order(client: Any) -> None:
    answers = converse(client, *(named(client, "counter", str(n), COUNT=numbers(20)) for n in range(50)))

    for n in range(50):
        mine = [a.infer_response.raw_output_contents[0][0] for a in answers if a.infer_response.id == str(n)]
        assert mine == list(range(20))


def test_a_slow_request_does_not_hold_up_the_next(client: Any, gate: Any) -> None:
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    requests.put(named(client, "slow", "slow", A=ONE))
    requests.put(named(client, "echo", "quick", A=ONE))
    answers = client.stub.ModelStreamInfer(iter(requests.get, None), timeout=20)

    assert next(answers).infer_response.id == "quick"
    requests.put(None)
    gate.opened.set()
    assert [a.infer_response.id for a in answers] == ["slow"]


def test_streams_hold_up_no_other_call(client: Any) -> None:
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    streams = [client.stub.ModelStreamInfer(iter(requests.get, None), timeout=20) for _ in range(20)]

    assert client.stub.ModelInfer(client.request("echo", A=ONE), timeout=10).model_name == "echo"

    for _ in streams:
        requests.put(None)
    assert [list(stream) for stream in streams] == [[]] * 20


def test_a_cancelled_stream_cancels_its_requests(client: Any, inference: Any, gate: Any) -> None:
    cancelled = threading.Event()

    def watch(request: Any, sink: Any) -> None:
        gate.entered.set()
        while not request.cancelled and not gate.opened.wait(0.005):
            pass
        sink.complete()
        if request.cancelled:
            cancelled.set()

    inference.add("watched", watch, decoupled=True)
    call = client.stub.ModelStreamInfer(iter((named(client, "watched", "w"),)))
    assert gate.entered.wait(10)
    call.cancel()

    assert cancelled.wait(10)


def test_large_messages_stream(client: Any) -> None:
    array = np.arange(3_000_000, dtype="<f4")

    answers = converse(client, *(named(client, "echo", str(n), A=array) for n in range(3)))

    assert [a.infer_response.raw_output_contents[0] == array.tobytes() for a in answers] == [True] * 3


def test_a_client_that_reads_slowly_gets_everything(client: Any) -> None:
    answers = client.stub.ModelStreamInfer(iter((named(client, "counter", "r", COUNT=numbers(2000)),)), timeout=20)
    time.sleep(0.05)

    assert sum(1 for _ in answers) == 2000


def test_the_official_client_streams(serve: Any) -> None:
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()
    client = triton.InferenceServerClient(f"127.0.0.1:{serve().port}")
    client.start_stream(lambda result, error: results.put((result, error)))
    tensor = triton.InferInput("COUNT", [1], "INT32")
    tensor.set_data_from_numpy(numbers(2))
    client.async_stream_infer("counter", [tensor], request_id="x", enable_empty_final_response=True)

    outcomes = [results.get(timeout=10) for _ in range(3)]
    client.stop_stream()
    client.close()

    assert [error for _, error in outcomes] == [None] * 3
    assert [result.as_numpy("INDEX").tolist() for result, _ in outcomes[:2]] == [[0], [1]]
    assert outcomes[2][0].get_response().parameters["triton_final_response"].bool_param


def test_stopping_ends_streams(client: Any, loop: Any, gate: Any) -> None:
    answers = client.stub.ModelStreamInfer(iter((named(client, "slow", "s", A=ONE),)))
    assert gate.entered.wait(10)

    asyncio.run_coroutine_threadsafe(client.server.stop(0.05), loop).result(10)

    assert client.error(list, answers)[0] in ("CANCELLED", "UNAVAILABLE")
