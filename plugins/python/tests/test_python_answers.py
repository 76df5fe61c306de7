from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.config.schema import ModelConfig, ModelOutput
from moorage.errors import Code, ModelError
from moorage.types import DataType, InferResponse

GOOD = "pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([1], np.int32))])"


def model(expression: str) -> Any:
    return f"""
        class TritonPythonModel:
            def execute(self, requests):
                return {expression}
    """


@pytest.mark.parametrize(
    "expression, words",
    [
        ("None", "returned None for a request"),
        ("[None]", "returned None for a request"),
        ("[]", "given 1 requests but returned 0 responses"),
        (f"[{GOOD}] * 2", "given 1 requests but returned 2 responses"),
        ("[7]", "returned a int in its list"),
        ("{}", "must return a list of InferenceResponse, one for each request, not dict"),
        ("1 / 0", "execute raised ZeroDivisionError: division by zero, at .*model.py:6 in execute"),
        ("sys.exit(3)", "NameError"),
        ("exit(3)", "SystemExit: 3"),
        ("[pb_utils.InferenceResponse([3])]", "output_tensors holds a int"),
        ("[pb_utils.InferenceResponse(error='no')]", "error is a str; it must be a pb_utils.TritonError"),
        ("[pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([1j]))])]", "complex128 have no data type"),
        ("[pb_utils.InferenceResponse([pb_utils.Tensor('', np.array([1]))])]", "a name that is not empty"),
        ("[pb_utils.InferenceResponse([], parameters={'a': []})]", "parameter 'a'"),
        ("[pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([1.5]))])]", "output 'Y' is FP64, but .* TYPE_INT32"),
    ],
)
def test_broken_rules_are_told_with_the_model_s_name(serve: Callable[..., Any], expression: str, words: str) -> None:
    with pytest.raises(ModelError, match=f"model 'm': .*{words}"):
        raise serve(model(expression)).error()


def test_a_wrong_entry_fails_its_own_request_only(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    good, bad = serve(model(f"[{GOOD}, 7]")).answer(job(), job())
    assert isinstance(good, InferResponse)
    assert isinstance(bad, ModelError)


def test_an_exception_fails_all_requests_of_the_call(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    answers = serve(model("undefined")).answer(job(), job())
    assert [type(answer) for answer in answers] == [ModelError, ModelError]


def test_the_message_has_the_last_places_in_the_model_s_code(serve: Callable[..., Any]) -> None:
    served = serve(
        """
        import deep

        class TritonPythonModel:
            def execute(self, requests):
                return deep.outer()
        """,
        files={"deep.py": "def outer():\n    return inner()\n\ndef inner():\n    raise KeyError('word')\n"},
    )
    assert "KeyError: 'word', at " in str(served.error())
    assert "deep.py:5 in inner, called from " in str(served.error())
    assert "model.py:8 in execute" in str(served.error())


@pytest.mark.parametrize(
    "code, meant",
    [
        ("UNKNOWN", Code.UNKNOWN),
        ("INTERNAL", Code.INTERNAL),
        ("NOT_FOUND", Code.NOT_FOUND),
        ("INVALID_ARG", Code.INVALID_ARGUMENT),
        ("UNAVAILABLE", Code.UNAVAILABLE),
        ("UNSUPPORTED", Code.UNSUPPORTED),
        ("ALREADY_EXISTS", Code.ALREADY_EXISTS),
        ("CANCELLED", Code.CANCELLED),
    ],
)
def test_a_model_s_own_error_keeps_its_code_and_text(
    serve: Callable[..., Any], job: Callable[..., Any], code: str, meant: Any
) -> None:
    (answer,) = serve(
        model(f"[pb_utils.InferenceResponse(error=pb_utils.TritonError('word', pb_utils.TritonError.{code}))]")
    ).answer(job())
    assert isinstance(answer, InferResponse)
    assert answer.outputs == []
    assert answer.error is not None
    assert (answer.error.code, str(answer.error)) == (meant, "word")


def test_an_error_without_code_is_internal(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    (answer,) = serve(model("[pb_utils.InferenceResponse(error=pb_utils.TritonError('word'))]")).answer(job())
    assert answer.error.code is Code.INTERNAL


def test_outputs_that_nobody_asked_for_stay_behind(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    two = "[pb_utils.InferenceResponse([pb_utils.Tensor(n, np.array([1], np.int32)) for n in ('Y', 'EXTRA')])]"
    (answer,) = serve(model(two)).answer(job())
    assert [tensor.name for tensor in answer.outputs] == ["Y"]
    (answer,) = serve(model(two)).answer(job((1,), ("OTHER",)))
    assert answer.outputs == []


def test_no_outputs_at_all_are_allowed(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    (answer,) = serve(model("[pb_utils.InferenceResponse([])]")).answer(job())
    assert answer.outputs == []


def test_parameters_travel_with_the_response(serve: Callable[..., Any], job: Callable[..., Any]) -> None:
    (answer,) = serve(model("[pb_utils.InferenceResponse([], parameters={'a': 1, 'b': True})]")).answer(job())
    assert answer.parameters == {"a": 1, "b": True}


def test_execute_may_return_a_tuple(serve: Callable[..., Any]) -> None:
    assert serve(model(f"({GOOD},)")).values() == [1]


def test_a_class_without_execute_loads_and_fails_requests(serve: Callable[..., Any]) -> None:
    error = serve("class TritonPythonModel:\n    pass\n").error()
    assert "TritonPythonModel has no method 'execute'" in str(error)


def test_the_model_goes_on_after_an_exception(serve: Callable[..., Any]) -> None:
    served = serve("""
        class TritonPythonModel:
            def execute(self, requests):
                x = requests[0].inputs()[0].as_numpy()
                if x[0] < 0:
                    raise pb_utils.TritonModelException("negative")
                return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", x)])]
    """)
    assert "TritonModelException: negative" in str(served.error([-1]))
    assert served.values([3]) == [3]


@pytest.mark.parametrize(
    "array, found",
    [
        ("np.array(['é', 'b'])", ["é".encode(), b"b"]),
        ("np.array([b'a', b'bc'])", [b"a", b"bc"]),
        ("np.array(['a', b'b\\0', 7], dtype=object)", [b"a", b"b\0", b"7"]),
    ],
)
def test_texts_in_any_form_come_out_as_bytes(serve: Callable[..., Any], array: Any, found: Any) -> None:
    config = ModelConfig(name="m", backend="python", output=(ModelOutput("Y", DataType.BYTES, (-1,)),))
    served = serve(model(f"[pb_utils.InferenceResponse([pb_utils.Tensor('Y', {array})])]"), config=config)
    assert served.values() == found


def test_big_endian_arrays_are_turned(serve: Callable[..., Any]) -> None:
    served = serve(model("[pb_utils.InferenceResponse([pb_utils.Tensor('Y', np.array([258], '>i4'))])]"))
    assert served.values() == [258]
