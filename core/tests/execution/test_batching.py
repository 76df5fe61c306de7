"""Stacking and splitting for `BatchInstance`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from moorage._execution.batching import BatchRunner
from moorage._execution.statistics import Execution
from moorage.backend import BatchInstance
from moorage.config.schema import BatchInput, BatchOutput, ModelConfig, ModelInput, ModelOutput
from moorage.errors import ModelError, Unsupported
from moorage.types import DataType, InferRequest, InferResponse, Job, RequestedOutput, Tensor


class Doubler(BatchInstance):
    """Doubles X; remembers the shapes that it saw and the outputs it was asked for."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []
        self.wanted: list[list[str]] = []

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        self.shapes.append(inputs["X"].shape)
        self.wanted.append(list(outputs))
        if inputs["X"].size and inputs["X"].flat[0] < 0:
            raise ValueError("negative")
        return {"Y": inputs["X"] * 2, "Z": inputs["X"]}


CONFIG = ModelConfig(
    name="doubler",
    max_batch_size=8,
    input=(ModelInput(name="X", data_type=DataType.FP32, dims=(-1,)),),
    output=(
        ModelOutput(name="Y", data_type=DataType.FP32, dims=(-1,)),
        ModelOutput(name="Z", data_type=DataType.FP32, dims=(-1,)),
    ),
)


class NoSink:
    def send(self, response: object, *, final: bool) -> None: ...

    def fail(self, error: object) -> None: ...

    def complete(self) -> None: ...


def job(array: np.ndarray, *outputs: str) -> Job:
    asked = tuple(RequestedOutput(name) for name in outputs)
    return Job(
        InferRequest("doubler", {"X": Tensor("X", DataType.FP32, array)}, outputs=asked),
        NoSink(),
        batch_size=array.shape[0],
    )


def rows(*values: float, width: int = 2) -> np.ndarray:
    return np.repeat(np.array(values, np.float32)[:, None], width, axis=1)


def test_requests_of_one_shape_run_together_and_get_their_own_rows() -> None:
    instance = Doubler()
    answers = BatchRunner(CONFIG, instance)([job(rows(1, 2)), job(rows(3)), job(rows(4, 5))], Execution())
    assert instance.shapes == [(5, 2)]
    got = [answer.outputs[0].array[:, 0].tolist() for answer in answers if isinstance(answer, InferResponse)]
    assert got == [[2, 4], [6], [8, 10]]


def test_other_shapes_run_apart_and_a_failure_stays_with_its_group() -> None:
    instance = Doubler()
    answers = BatchRunner(CONFIG, instance)([job(rows(1)), job(rows(-1, width=3)), job(rows(2))], Execution())
    assert instance.shapes == [(2, 2), (1, 3)]
    assert isinstance(answers[0], InferResponse) and isinstance(answers[2], InferResponse)
    assert isinstance(answers[1], ModelError) and "negative" in str(answers[1]) and "doubler" in str(answers[1])


def test_only_outputs_that_somebody_asked_for_are_computed() -> None:
    instance = Doubler()
    runner = BatchRunner(CONFIG, instance)
    runner([job(rows(1), "Z")], Execution())
    runner([job(rows(1), "Z"), job(rows(1))], Execution())
    assert instance.wanted == [["Z"], ["Y", "Z"]]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({}, ["Y"]),
        ({"Y": np.zeros((1, 2), np.float64)}, ["Y", "float64", "TYPE_FP32"]),
        ({"Y": np.zeros((1,), np.float32)}, ["Y", "[1]", "[-1, -1]"]),
    ],
)
def test_outputs_that_break_the_configuration_are_errors(arrays: dict[str, np.ndarray], words: list[str]) -> None:
    class Broken(BatchInstance):
        def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
            return arrays

    with pytest.raises(ModelError) as caught:
        BatchRunner(CONFIG, Broken())([job(rows(1), "Y")], Execution())
    for word in ["doubler", *words]:
        assert word in str(caught.value)


def test_models_without_batching_run_each_request_alone() -> None:
    config = ModelConfig(name="doubler", input=CONFIG.input, output=CONFIG.output)
    instance = Doubler()
    flat = np.ones(3, np.float32)
    BatchRunner(config, instance)([job(flat), job(flat)], Execution())
    assert instance.shapes == [(3,), (3,)]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"input": (evolve(CONFIG.input[0], allow_ragged_batch=True),)}, "allow_ragged_batch"),
        ({"batch_input": (BatchInput(),)}, "batch_input"),
        ({"batch_output": (BatchOutput(),)}, "batch_output"),
    ],
)
def test_ragged_batches_are_refused_at_load(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(Unsupported, match=f"doubler.*{word}"):
        BatchRunner(evolve(CONFIG, **changes), Doubler())
