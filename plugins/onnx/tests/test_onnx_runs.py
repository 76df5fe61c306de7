from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moorage.errors import ModelError, RequestError
from moorage_onnx.faults import run_error


def objects(*elements: Any, shape: Any = (1, -1)) -> Any:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)


def test_blurs_an_image(instance: Callable[..., Any]) -> None:
    image = np.zeros((1, 1, 5, 5), np.float32)
    image[0, 0, 2, 2] = 9
    blurred = instance("conv").run({"IMAGE": image}, ["BLURRED"])["BLURRED"]
    np.testing.assert_allclose(blurred[0, 0, 1:4, 1:4], 1, rtol=1e-6)
    assert blurred.sum() == pytest.approx(9)


def test_strings_keep_every_character(instance: Callable[..., Any]) -> None:
    words = objects(b"", b"a\0b", "é €".encode(), b"b'quoted'", b"x" * 10_000)
    np.testing.assert_array_equal(instance("identity_bytes").run({"X": words}, ["Y"])["Y"], words)


def test_strings_may_be_none_at_all(instance: Callable[..., Any]) -> None:
    assert instance("identity_bytes").run({"X": np.empty((0, 3), object)}, ["Y"])["Y"].shape == (0, 3)


def test_bytes_that_are_no_text_are_refused_with_their_place(instance: Callable[..., Any]) -> None:
    with pytest.raises(RequestError, match="input 'X' of model 'identity_bytes': element 1 is not valid UTF-8"):
        instance("identity_bytes").run({"X": objects(b"fine", b"\xff\xfe")}, ["Y"])


def test_bf16_keeps_its_bits(instance: Callable[..., Any]) -> None:
    numbers = np.array([[1.5, -2, 3.140625, np.inf, -0.0]]).astype(ml_dtypes.bfloat16)
    result = instance("identity_bf16").run({"X": numbers[:, ::-1]}, ["Y"])["Y"]
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.view(np.uint16), np.ascontiguousarray(numbers[:, ::-1]).view(np.uint16))


def test_bf16_may_be_empty(instance: Callable[..., Any]) -> None:
    assert instance("identity_bf16").run({"X": np.empty((0, 2), ml_dtypes.bfloat16)}, ["Y"])["Y"].shape == (0, 2)


@pytest.mark.parametrize(
    "inputs, words",
    [
        ({"LEFT": np.ones((1, 3), "f4")}, "model 'add_sub'.*RIGHT"),
        ({"LEFT": np.ones((1, 3), "f4"), "RIGHT": np.ones((1, 4), "f4")}, "model 'add_sub'.*RIGHT"),
        ({"LEFT": np.ones((1, 3), "f8"), "RIGHT": np.ones((1, 3), "f4")}, "model 'add_sub'.*double"),
    ],
)
def test_wrong_inputs_are_the_request_s_fault(instance: Callable[..., Any], inputs: Any, words: str) -> None:
    with pytest.raises(RequestError, match=f"(?s){words}"):
        instance("add_sub").run(inputs, ["GAP"])


def test_sizes_that_an_operator_cannot_take_leave_the_model_as_it_was(instance: Callable[..., Any]) -> None:
    made = instance("reshape")
    with pytest.raises(RequestError, match=r"(?s)model 'reshape'.*Reshape"):
        made.run({"X": np.ones(3, np.float32)}, ["Y"])
    assert made.run({"X": np.ones(4, np.float32)}, ["Y"])["Y"].shape == (2, 2)


def test_an_index_out_of_range_is_the_request_s_fault(instance: Callable[..., Any]) -> None:
    with pytest.raises(RequestError, match=r"model 'table'.*out of data bounds"):
        instance("table").run({"ROW": np.array([4096])}, ["VALUES"])


@pytest.mark.parametrize(
    "text",
    [
        "axis == 1 || axis == largest was false. Attempting to broadcast an axis by a dimension other than 1. 2 by 3",
        "matmul_helper.h:59 Compute MatMul dimension mismatch",
        "Non concat axis dimensions must match: Axis 1 has mismatched dimensions of 5 and 3",
        "The input tensor cannot be reshaped to the requested shape. Input shape:{2}, requested shape:{9}",
        "Input channels C is not equal to kernel channels * group. C: 2 kernel channels: 3 group: 1",
    ],
)
def test_sizes_that_do_not_go_together_are_the_request_s_fault(text: str) -> None:
    assert isinstance(run_error(RuntimeError(text), "m"), RequestError)
    assert isinstance(run_error(RuntimeError("out of memory"), "m"), ModelError)


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = RequestError("plain")
    assert run_error(error, "m") is error


def test_an_error_without_text_shows_its_type() -> None:
    assert str(run_error(KeyError(), "m")) == "model 'm': KeyError"
