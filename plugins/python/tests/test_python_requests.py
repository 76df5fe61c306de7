from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage.errors import MoorageError
from moorage.types import InferResponse

REPORT = """
    import json

    class TritonPythonModel:
        def execute(self, requests):
            out = []
            for r in requests:
                out.append(pb_utils.InferenceResponse(
                    [pb_utils.Tensor("Y", np.array([0], np.int32))],
                    parameters={"report": json.dumps([
                        r.request_id(), r.correlation_id(), r.flags(), r.timeout(), sorted(r.requested_output_names()),
                        json.loads(r.parameters()), r.is_cancelled(), r.trace().get_context(),
                        r.inputs()[0].name(), r.inputs()[0].shape(), r.inputs()[0].triton_dtype(), r.inputs()[0].is_cpu(),
                        r.model_name(), r.model_version(),
                    ])}))
            return out
"""


def report(served: Any, job: Callable[..., Any]) -> Any:
    (answer,) = served.answer(job)
    assert isinstance(answer, InferResponse), answer
    return json.loads(str(answer.parameters["report"]))


def test_a_plain_request_has_the_defaults(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    assert report(serve(REPORT), job([1, 2])) == ["", 0, 0, 0, ["Y"], {}, False, None, "X", [2], 8, True, "m", 1]


def test_a_request_tells_all_that_it_was_sent_with(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    sent = job(
        [1],
        ("Y",),
        id="id 7",
        correlation_id="s",
        sequence_start=True,
        sequence_end=True,
        timeout_us=5,
        parameters={"a": 1, "b": True, "c": "x", "d": 0.5},
        cancelled=True,
    )
    told = report(serve(REPORT), sent)
    assert told[:8] == ["id 7", "s", 3, 5, ["Y"], {"a": 1, "b": True, "c": "x", "d": 0.5}, True, None]


def test_inputs_that_came_read_only_can_be_written_to(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                array = pb_utils.get_input_tensor_by_name(requests[0], "X").as_numpy()
                array += 1
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)])]
    """)
    body = np.arange(3, dtype=np.int32).tobytes()
    assert served.values(np.frombuffer(body, np.int32)) == [1, 2, 3]
    assert body == np.arange(3, dtype=np.int32).tobytes()


def test_an_input_that_is_not_there_is_none(serve: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                found = pb_utils.get_input_tensor_by_name(requests[0], "OTHER")
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([found is None], np.int32))])]
    """)
    assert served.values() == [1]


@pytest.mark.parametrize("size", [2, 100_000])
def test_a_buffer_that_the_model_uses_again_does_not_change_what_was_sent(
    size: int, serve: Callable[..., Any], job: Callable[..., Any]
) -> None:
    served = serve(
        """
        class TritonPythonModel:
            def initialize(self, args):
                self.buffer = np.empty(SIZE, np.int32)

            def execute(self, requests):
                self.buffer[:] = requests[0].inputs()[0].as_numpy()[0]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", self.buffer)])]
    """.replace("SIZE", str(size))
    )
    (first,) = served.answer(job([1]))
    served.answer(job([2]))
    assert set(first.outputs[0].array.tolist()) == {1}


def test_a_view_of_such_a_buffer_is_safe_as_well(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def initialize(self, args):
                self.buffer = np.empty((2, 50_000), np.int32)

            def execute(self, requests):
                self.buffer[:] = requests[0].inputs()[0].as_numpy()[0]
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", self.buffer.reshape(-1))])]
    """)
    (first,) = served.answer(job([1]))
    served.answer(job([2]))
    assert set(first.outputs[0].array.tolist()) == {1}


def test_a_large_array_that_nobody_else_holds_is_not_copied(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve("""
        import ctypes

        class TritonPythonModel:
            def execute(self, requests):
                made = np.zeros(100_000, np.int32)
                where = {"where": made.ctypes.data}
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", made)], parameters=where)]
    """)
    (answer,) = served.answer(job())
    assert answer.outputs[0].array.ctypes.data == answer.parameters["where"]


def test_a_large_input_that_is_handed_back_is_not_copied(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", requests[0].inputs()[0].as_numpy())])]
    """)
    array = np.zeros(100_000, np.int32)
    (answer,) = served.answer(job(array))
    assert answer.outputs[0].array is array


def test_calling_another_model_says_that_it_is_not_supported_yet(serve: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                return [pb_utils.InferenceRequest(model_name="other", inputs=[], requested_output_names=["Y"]).exec()]
    """)
    error = served.error()
    assert isinstance(error, MoorageError)
    assert error.code.name == "UNSUPPORTED"
    assert "calling another model ('other') from a model is not supported yet" in str(error)


@pytest.mark.parametrize("call", ["load_model('x')", "unload_model('x')", "is_model_ready('x')", "MetricFamily('x', 'd', 0)"])
def test_what_is_missing_says_so(serve: Callable[..., Any], call: str) -> None:
    served = serve(f"""
        class TritonPythonModel:
            def execute(self, requests):
                pb_utils.{call}
    """)
    error = served.error()
    assert error.code.name == "UNSUPPORTED"
    assert "not supported yet" in str(error)


def test_execute_may_be_a_coroutine(serve: Callable[..., Any]) -> None:
    served = serve("""
        import asyncio

        class TritonPythonModel:
            async def execute(self, requests):
                await asyncio.sleep(0)
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", r.inputs()[0].as_numpy())]) for r in requests]
    """)
    assert served.values([4]) == [4]
