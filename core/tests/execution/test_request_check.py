"""The check that every request passes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._execution.check import RequestCheck
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput, TensorReshape
from moorage.errors import RequestError
from moorage.types import DataType, InferRequest, InferResponse, RequestedOutput, Tensor


def tensor(name: str, shape: tuple[int, ...], datatype: DataType = DataType.INT32) -> Tensor:
    return Tensor(name, datatype, np.zeros(shape, datatype.numpy))


def request(*tensors: Tensor, outputs: tuple[str, ...] = ()) -> InferRequest:
    return InferRequest("adder", {t.name: t for t in tensors}, outputs=tuple(RequestedOutput(name) for name in outputs))


CONFIG = ModelConfig(
    name="adder",
    max_batch_size=4,
    input=(
        ModelInput(name="LEFT", data_type=DataType.INT32, dims=(3,)),
        ModelInput(name="RIGHT", data_type=DataType.INT32, dims=(-1,), optional=True),
    ),
    output=(ModelOutput(name="SUM", data_type=DataType.INT32, dims=(3,)),),
)


def test_accepts_what_fits_and_counts_the_rows() -> None:
    assert RequestCheck(CONFIG).accept(request(tensor("LEFT", (2, 3)), tensor("RIGHT", (2, 9)), outputs=("SUM",))) == 2


def test_a_model_without_batching_adds_one_row() -> None:
    config = ModelConfig(name="flat", input=(ModelInput(name="X", data_type=DataType.INT32, dims=(-1, 2)),))
    assert RequestCheck(config).accept(InferRequest("flat", {"X": tensor("X", (0, 2))})) == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (request(), ["adder", "LEFT"]),
        (request(tensor("RIGHT", (1, 3))), ["adder", "LEFT"]),
        (request(tensor("LEFT", (1, 3)), tensor("MIDDLE", (1, 3))), ["adder", "MIDDLE", "LEFT", "RIGHT"]),
        (request(tensor("LEFT", (1, 3), DataType.FP32)), ["adder", "LEFT", "FP32", "INT32"]),
        (request(tensor("LEFT", (1, 4))), ["adder", "LEFT", "[1, 4]", "[-1, 3]"]),
        (request(tensor("LEFT", (3,))), ["adder", "LEFT"]),
        (request(tensor("LEFT", ())), ["adder", "LEFT", "batch"]),
        (request(tensor("LEFT", (5, 3))), ["adder", "LEFT", "5", "4"]),
        (request(tensor("LEFT", (0, 3))), ["adder", "LEFT", "0"]),
        (request(tensor("LEFT", (2, 3)), tensor("RIGHT", (1, 3))), ["adder", "RIGHT", "2", "1"]),
        (request(tensor("LEFT", (1, 3)), outputs=("PRODUCT",)), ["adder", "PRODUCT", "SUM"]),
    ],
)
def test_refuses_what_does_not_fit_naming_model_and_field(wrong: InferRequest, words: list[str]) -> None:
    with pytest.raises(RequestError) as caught:
        RequestCheck(CONFIG).accept(wrong)
    for word in words:
        assert word in str(caught.value)


@given(rows=st.integers(1, 8), free=st.integers(0, 5))
def test_reshape_there_and_back_keeps_the_data(rows: int, free: int) -> None:
    reshaped = TensorReshape((2, -1, 1))
    config = ModelConfig(
        name="squeezed",
        max_batch_size=8,
        input=(ModelInput(name="X", data_type=DataType.INT32, dims=(-1, 2), reshape=reshaped),),
        output=(ModelOutput(name="X", data_type=DataType.INT32, dims=(-1, 2), reshape=reshaped),),
    )
    check = RequestCheck(config)
    array = np.arange(rows * free * 2, dtype=np.int32).reshape(rows, free, 2)
    asked = InferRequest("squeezed", {"X": Tensor("X", DataType.INT32, array)})
    assert check.accept(asked) == rows
    inside = asked.inputs["X"]
    assert inside.shape == (rows, 2, free, 1)
    response = InferResponse([inside])
    check.restore(response)
    assert np.array_equal(response.outputs[0].array, array)
