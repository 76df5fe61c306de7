"""Asking models in process: arrays in, arrays out."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures import wait as wait_for
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np
import pytest

from moorage._execution.bells import own_bell
from moorage.errors import DeadlineExceeded, Internal, ModelError, NotFound, RequestError, Unsupported
from moorage.server import InferResult, RequestedOutput, Server
from moorage.types import DataType

if TYPE_CHECKING:
    from core.tests.app.conftest import AddModel, Stage

Open = Callable[..., Server]
PATIENCE = 20.0


def numbers(*values: float) -> dict[str, np.ndarray]:
    return {"X": np.array(values, np.float32)}


def test_a_result_maps_names_to_arrays(open_server: Open) -> None:
    result = open_server().infer("double", numbers(1, 2), request_id="seven")
    assert dict(result).keys() == {"Y"} and len(result) == 1
    np.testing.assert_array_equal(result["Y"], np.array([2, 4], np.float32))
    assert (result.model_name, result.model_version, result.request_id) == ("double", 1, "seven")
    assert result.datatypes == {"Y": "FP32"} and result.parameters == {"model_says": "hello"}
    assert "Y: FP32[2]" in repr(result)


@pytest.mark.parametrize(
    ("datatype", "given", "wanted"),
    [
        (DataType.BYTES, np.array(["grün", ""]), ["grün".encode(), b""]),
        (DataType.BYTES, np.array([b"a", b"bc"]), [b"a", b"bc"]),
        (DataType.BYTES, np.array(["x", b"\0y"], object), [b"x", b"\0y"]),
        (DataType.BYTES, ["a list"], [b"a list"]),
        (DataType.BF16, np.array([1.5, -2], ml_dtypes.bfloat16), [1.5, -2]),
        (DataType.INT64, [1, 2], [1, 2]),
        (DataType.FP32, np.array([1, 2], ">f4"), [1, 2]),
        (DataType.INT32, np.arange(6, dtype=np.int32)[::2], [0, 2, 4]),
        (DataType.BOOL, np.array([True, False]), [True, False]),
    ],
)
def test_arrays_find_their_data_type(
    open_server: Open, add: AddModel, datatype: DataType, given: object, wanted: list[object]
) -> None:
    add("echo", datatype=datatype)
    result = open_server().infer("echo", {"X": given})
    assert result["Y"].tolist() == wanted
    assert result["Y"].dtype == datatype.numpy and result.datatypes == {"Y": datatype.wire}


@pytest.mark.parametrize("given", [np.array([1j]), np.array([{}], object), np.array(["2020-01-01"], "M8[D]")])
def test_arrays_that_no_tensor_holds_are_named(open_server: Open, given: np.ndarray) -> None:
    with pytest.raises(RequestError, match="input 'X'"):
        open_server().infer("double", {"X": given})


def test_a_model_cannot_write_into_the_callers_array(open_server: Open, add: AddModel) -> None:
    add("scribble")
    given = numbers(1, 2)
    with pytest.raises(ModelError, match="read-only"):
        open_server().infer("scribble", given)
    assert given["X"].tolist() == [1, 2]
    given["X"][0] = 5  # it is the caller's to write to


def test_what_is_said_of_a_request_reaches_the_model(open_server: Open, stage: Stage) -> None:
    open_server().infer(
        "double",
        numbers(1),
        version="1",
        parameters={"k": 3},
        request_id="id",
        correlation_id=9,
        sequence_start=True,
        sequence_end=True,
        priority=2,
        timeout=PATIENCE,
        outputs=["Y"],
    )
    request = stage.jobs[-1].request
    assert (request.model_version, request.parameters, request.id, request.correlation_id) == (1, {"k": 3}, "id", 9)
    assert (request.sequence_start, request.sequence_end, request.priority) == (True, True, 2)
    assert request.timeout_us == PATIENCE * 1e6
    assert [output.name for output in request.outputs] == ["Y"]


def test_classes_can_be_asked_for(open_server: Open) -> None:
    result = open_server().infer("double", numbers(1, 3, 2), outputs=[RequestedOutput("Y", classification=2)])
    assert result["Y"].tolist() == [b"6.000000:1", b"4.000000:2"]


@pytest.mark.parametrize(
    ("name", "inputs", "options", "error", "words"),
    [
        ("nobody", numbers(1), {}, NotFound, "nobody"),
        ("double", numbers(1), {"version": 7}, NotFound, "version 7"),
        ("double", numbers(1), {"version": "new"}, RequestError, "'new'"),
        ("double", {}, {}, RequestError, "needs input 'X'"),
        ("double", {"X": np.array([1.0])}, {}, RequestError, "FP32, not FP64"),
        ("fail", numbers(1), {}, ModelError, "no luck"),
        ("count", numbers(1), {}, Unsupported, "decoupled"),
    ],
)
def test_errors_are_raised(
    open_server: Open,
    add: AddModel,
    name: str,
    inputs: dict[str, np.ndarray],
    options: dict[str, object],
    error: type[Exception],
    words: str,
) -> None:
    add("fail")
    add("count", decoupled=True)
    with pytest.raises(error, match=words):
        open_server().infer(name, inputs, **options)  # type: ignore[arg-type]


def test_several_responses_to_a_call_for_one_are_an_error(open_server: Open, add: AddModel) -> None:
    add("count")
    server = open_server()
    with pytest.raises(Internal, match="several responses"):
        server.infer("count", numbers(3))
    with pytest.raises(Internal, match="without a response"):
        server.infer("count", numbers(0))
    assert server.infer("count", numbers(1))["Y"].tolist() == [0]


def test_who_waits_no_longer_cancels(open_server: Open, add: AddModel, stage: Stage) -> None:
    add("wait")
    with pytest.raises(DeadlineExceeded, match=r"'wait'.*0.01 s"):
        open_server().infer("wait", numbers(1), timeout=0.01)
    stage.gate.set()
    assert stage.cancelled.wait(PATIENCE)


def test_ctrl_c_cancels_and_the_thread_can_ask_again(open_server: Open, add: AddModel, stage: Stage) -> None:
    add("wait")
    server = open_server()

    def interrupt() -> None:
        assert stage.entered.wait(PATIENCE)
        signal.pthread_kill(main, signal.SIGINT)

    bell, main = own_bell(), threading.get_ident()
    assert threading.main_thread().ident == main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with ThreadPoolExecutor(1) as pool:
        interrupting = pool.submit(interrupt)
        with pytest.raises(KeyboardInterrupt):
            server.infer("wait", numbers(1))
        interrupting.result(PATIENCE)
    assert own_bell() is not bell, "the answer that nobody waits for rings the old one"
    stage.gate.set()
    assert stage.cancelled.wait(PATIENCE)
    server.submit("wait", numbers(1)).result(PATIENCE)  # so the late answer has been given; it is nobody's
    assert server.infer("double", numbers(5))["Y"].tolist() == [10]


def test_a_future_brings_the_result(open_server: Open, add: AddModel, stage: Stage) -> None:
    add("wait")
    add("fail")
    server = open_server()
    pending = server.submit("wait", numbers(1))
    assert stage.entered.wait(PATIENCE) and not pending.done()
    stage.gate.set()
    assert pending.result(PATIENCE)["Y"].tolist() == [2]
    assert not pending.cancel()
    assert isinstance(server.submit("fail", numbers(1)).exception(PATIENCE), ModelError)
    with pytest.raises(NotFound):
        server.submit("nobody", numbers(1))


def test_a_future_can_be_cancelled(open_server: Open, add: AddModel, stage: Stage) -> None:
    add("wait")
    pending = open_server().submit("wait", numbers(1))
    assert stage.entered.wait(PATIENCE)
    assert pending.cancel() and pending.cancel() and pending.cancelled()
    assert wait_for([pending], PATIENCE).done == {pending}
    stage.gate.set()
    assert stage.cancelled.wait(PATIENCE)


def test_many_threads_get_their_own_results(open_server: Open) -> None:
    server = open_server()

    def ask(number: int) -> InferResult:
        return server.infer("double", numbers(number, number))

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(ask, range(400)))
    assert [result["Y"].tolist() for result in results] == [[2.0 * number] * 2 for number in range(400)]
    futures: list[Future[InferResult]] = [server.submit("double", numbers(number)) for number in range(100)]
    assert sorted(done.result()["Y"][0] for done in as_completed(futures, PATIENCE)) == [2.0 * number for number in range(100)]
    (counts,) = server.statistics("double")
    assert counts.success.count == 500


async def test_it_can_be_used_where_a_loop_runs(open_server: Open) -> None:
    server = open_server()
    for _ in range(20):
        threading.Event().wait(0.005)  # let the model's thread fall asleep
        server.infer("double", numbers(2), timeout=PATIENCE)
    assert server.infer("double", numbers(2))["Y"].tolist() == [4]
    assert [entry.name for entry in server.index()] == ["double"]
    in_thread = await asyncio.to_thread(server.infer, "double", numbers(3))
    assert in_thread["Y"].tolist() == [6]
    wrapped = await asyncio.wrap_future(server.submit("double", numbers(4)))
    assert wrapped["Y"].tolist() == [8]


class TestStreams:
    def test_responses_come_one_after_the_other(self, open_server: Open, add: AddModel) -> None:
        add("count", decoupled=True)
        stream = open_server().stream("count", numbers(5), request_id="s")
        responses = list(stream)
        assert [response["Y"].tolist() for response in responses] == [[0], [1], [2], [3], [4]]
        assert {response.request_id for response in responses} == {"s"}
        assert list(stream) == []

    def test_a_model_with_one_response_can_be_streamed(self, open_server: Open) -> None:
        assert [response["Y"].tolist() for response in open_server().stream("double", numbers(1))] == [[2]]

    def test_an_error_is_raised_and_the_rest_can_be_read(self, open_server: Open, add: AddModel) -> None:
        add("stumble", decoupled=True)
        add("fail")
        server = open_server()
        stream = server.stream("stumble", numbers(1))
        with pytest.raises(ModelError, match="stumbled"):
            next(stream)
        assert [response["Y"].tolist() for response in stream] == [[1]]
        with pytest.raises(ModelError, match="no luck"):
            list(server.stream("fail", numbers(1)))
        with pytest.raises(NotFound):
            server.stream("nobody", numbers(1))

    @pytest.mark.parametrize("way", ["cancel", "with", "drop", "timeout"])
    def test_a_stream_is_cancelled(self, open_server: Open, add: AddModel, stage: Stage, way: str) -> None:
        add("endless", decoupled=True)
        server = open_server()
        stream = server.stream("endless", numbers(1), timeout=0.05 if way == "timeout" else None)
        assert next(stream)["Y"].tolist() == [0]
        if way == "cancel":
            stream.cancel()
        elif way == "with":
            with stream:
                pass
        elif way == "drop":
            del stream
        else:
            with pytest.raises(DeadlineExceeded):
                next(stream)
            assert list(stream) == []
        assert stage.cancelled.wait(PATIENCE)


def test_no_event_loop_is_on_the_way(open_server: Open, add: AddModel) -> None:
    """The loop is kept busy, and requests are answered all the same."""
    server = open_server()
    busy, go_on = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        go_on.wait(PATIENCE)

    background = server._background
    assert background is not None
    blocked = background.begin(block())
    assert busy.wait(PATIENCE)
    try:
        assert server.infer("double", numbers(1), timeout=PATIENCE)["Y"].tolist() == [2]
        assert server.submit("double", numbers(1)).result(PATIENCE)["Y"].tolist() == [2]
        assert len(list(server.stream("double", numbers(1), timeout=PATIENCE))) == 1
    finally:
        go_on.set()
        blocked.result(PATIENCE)
