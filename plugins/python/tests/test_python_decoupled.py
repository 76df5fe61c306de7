from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from moorage.errors import ModelError

FINAL = "pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL"
ONE = "pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([{}], np.int32))])"


def model(body: str) -> Any:
    lines = "\n".join("                    " + line for line in body.strip().splitlines())
    return f"""
        import threading

        class TritonPythonModel:
            def initialize(self, args):
                self.kept = []

            def execute(self, requests):
                for request in requests:
                    sender = request.get_response_sender()
{lines}
    """


def values(job: Any) -> Any:
    return [response.outputs[0].array.tolist() for response in job.sink.responses if response.error is None]


def test_any_number_of_responses_then_the_end(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve(
        model(f"sender.send({ONE.format(1)})\nsender.send({ONE.format(2)})\nsender.send(flags={FINAL})"), decoupled=True
    )
    asked = job()
    assert served.answer(asked) == [None]
    assert asked.sink.ended.is_set()
    assert values(asked) == [[1], [2]]


def test_the_last_response_may_carry_the_end(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    asked = job()
    serve(model(f"sender.send({ONE.format(1)}, {FINAL})"), decoupled=True).answer(asked)
    assert asked.sink.ended.is_set()
    assert values(asked) == [[1]]


def test_no_response_at_all(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    asked = job()
    serve(model(f"sender.send(flags={FINAL})"), decoupled=True).answer(asked)
    assert asked.sink.ended.is_set()
    assert values(asked) == []


def test_responses_may_come_from_a_thread_after_execute(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"""
threading.Thread(target=lambda s: (s.send({ONE.format(5)}), s.send(flags={FINAL})), args=(sender,)).start()
"""
    asked = job()
    assert serve(model(body), decoupled=True).answer(asked) == [None]
    assert asked.sink.ended.wait(10)
    assert values(asked) == [[5]]


def test_sending_after_the_end_is_an_error_for_the_model(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"sender.send(flags={FINAL})\nsender.send({ONE.format(1)})"
    asked = job()
    answers = serve(model(body), decoupled=True).answer(asked)
    assert answers == [None]
    assert values(asked) == []


@pytest.mark.parametrize(
    "call, words",
    [
        ("sender.send()", "give a response, or flags"),
        ("sender.send(7)", "cannot send a int"),
        (f"sender.send({ONE.format(1)}, flags=8)", "flags 8"),
    ],
)
def test_wrong_calls_of_send_fail_the_request(
    serve: Callable[..., Any], job: Callable[..., Any], call: str, words: str
) -> None:
    (answer,) = serve(model(call), decoupled=True).answer(job())
    assert isinstance(answer, ModelError)
    assert words in str(answer)


def test_an_error_is_a_response_like_others(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError('tripped')))\nsender.send(flags={FINAL})"
    asked = job()
    serve(model(body), decoupled=True).answer(asked)
    assert [str(response.error) for response in asked.sink.responses] == ["tripped"]


def test_a_wrong_type_reaches_the_client_as_an_error(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"sender.send(pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([1.5]))]), {FINAL})"
    asked = job()
    serve(model(body), decoupled=True).answer(asked)
    assert "output 'Y' is FP64" in str(asked.sink.responses[0].error)


def test_an_exception_after_some_responses_fails_the_request_once(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"sender.send({ONE.format(1)})\nraise ValueError('halfway')"
    (answer,) = serve(model(body), decoupled=True).answer(job())
    assert "halfway" in str(answer)


def test_an_exception_leaves_finished_requests_alone(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"""
if request.request_id() == "bad":
    raise ValueError("bad one")
sender.send({ONE.format(1)}, {FINAL})
"""
    first, second = serve(model(body), decoupled=True).answer(job(id="good"), job(id="bad"))
    assert first is None
    assert isinstance(second, ModelError)


def test_returning_responses_is_an_error(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    (answer,) = serve(
        f"class TritonPythonModel:\n    def execute(self, requests):\n        return [{ONE.format(1)}]\n", decoupled=True
    ).answer(job())
    assert "the model is decoupled, so execute must return None, not list" in str(answer)


def test_a_dropped_sender_fails_the_request(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    asked = job()
    assert serve(model("pass"), decoupled=True).answer(asked) == [None]
    assert asked.sink.ended.wait(10)
    assert "dropped the request without sending its final response" in str(asked.sink.error)


def test_requests_left_open_fail_when_the_instance_closes(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve(model("self.kept.append(sender)"), decoupled=True)
    asked = job()
    served.answer(asked)
    assert not asked.sink.ended.is_set()
    served.instance.close()
    assert "unloaded before it had sent the final response" in str(asked.sink.error)


def test_finalize_may_still_finish_requests(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    code = (
        model("self.kept.append(sender)")
        + f"""
            def finalize(self):
                for sender in self.kept:
                    sender.send({ONE.format(9)}, {FINAL})
    """
    )
    served = serve(code, decoupled=True)
    asked = job()
    served.answer(asked)
    served.instance.close()
    assert values(asked) == [[9]]
    assert asked.sink.error is None


def test_a_sender_sees_that_the_client_has_gone(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    body = f"""
def stream(sender=sender):
    self.started.set()
    while not sender.is_cancelled():
        self.tick.wait(0.001)
    sender.send(flags={FINAL})
threading.Thread(target=stream).start()
"""
    served = serve(
        model(body).replace("self.kept = []", "self.started = threading.Event(); self.tick = threading.Event()"), decoupled=True
    )
    asked = job()
    served.answer(asked)
    assert not asked.sink.ended.is_set()
    asked.request.cancelled = True
    assert asked.sink.ended.wait(10)


def test_a_coroutine_runs_in_the_background(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    code = f"""
        import asyncio

        class TritonPythonModel:
            def initialize(self, args):
                self.go = asyncio.Event()

            async def execute(self, requests):
                for request in requests:
                    sender = request.get_response_sender()
                    await asyncio.sleep(0.01)
                    if request.inputs()[0].as_numpy()[0] < 0:
                        raise ValueError("negative")
                    sender.send({ONE.format(3)}, {FINAL})
    """
    served = serve(code, decoupled=True)
    good, bad = job([1]), job([-1])
    assert served.answer(good) == [None]
    assert served.answer(bad) == [None]
    assert good.sink.ended.wait(10)
    assert bad.sink.ended.wait(10)
    assert values(good) == [[3]]
    assert "negative" in str(bad.sink.error)


def test_closing_cancels_coroutines(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    code = """
        import asyncio

        class TritonPythonModel:
            async def execute(self, requests):
                await asyncio.sleep(1000)
    """
    served = serve(code, decoupled=True)
    asked = job()
    served.answer(asked)
    served.instance.close()
    assert asked.sink.ended.wait(10)
    assert asked.sink.error is not None


def test_a_plain_model_may_use_a_sender_too(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    asked = job()
    answers = serve(model(f"sender.send({ONE.format(4)})")).answer(asked)
    assert answers == [None]
    assert values(asked) == [[4]]
    assert asked.sink.ended.is_set()


@pytest.mark.parametrize(
    "body, words",
    [
        (f"sender.send({ONE.format(1)})\nsender.send({ONE.format(1)})", "second response"),
        (f"sender.send(flags={FINAL})", "cannot finish without a response"),
    ],
)
def test_a_plain_model_must_send_exactly_one(serve: Callable[..., Any], job: Callable[..., Any], body: str, words: str) -> None:
    code = (
        model(
            "try:\n"
            + "\n".join("    " + line for line in body.splitlines())
            + "\nexcept pb_utils.TritonModelException as error:\n    self.kept.append(str(error))"
        ).replace("self.kept = []", "self.kept = KEPT")
        + ""
    )
    served = serve("KEPT = []\n" + __import__("textwrap").dedent(code))
    served.answer(job())
    import sys

    (kept,) = [
        module.KEPT for name, module in sys.modules.items() if name.startswith("moorage_model_") and hasattr(module, "KEPT")
    ]
    assert words in kept[0]


def test_senders_work_from_many_threads(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve(model("self.kept.append(sender)"), decoupled=True)
    asked = [job() for _ in range(50)]
    served.answer(*asked)
    senders = served.instance._hosted._model.kept

    import numpy as np

    import triton_python_backend_utils as pb_utils

    def finish(part: Any) -> None:
        for sender in part:
            for _ in range(3):
                sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([1], np.int32))]))
            sender.send(flags=1)

    threads = [threading.Thread(target=finish, args=(senders[start::5],)) for start in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(len(one.sink.responses) == 3 and one.sink.ended.is_set() for one in asked)
