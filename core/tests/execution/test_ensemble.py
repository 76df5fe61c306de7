"""Ensembles: which steps fit together, and how a request goes from step to step."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from moorage._execution.ensemble.flow import Flow, fitted
from moorage._execution.ensemble.plan import Plan, Slot, Step, compiled
from moorage.config import parse_text
from moorage.config.schema import ModelConfig
from moorage.errors import InvalidArgument, ModelError, MoorageError
from moorage.types import DataType, InferRequest, InferResponse, RequestedOutput, Sink, Tensor


def config(text: str, name: str = "e") -> ModelConfig:
    return parse_text(f'name: "{name}" {text}').config


def tensors(kind: str, names: Iterable[str], more: str = "data_type: TYPE_INT32 dims: [ 1 ]") -> str:
    return " ".join(f'{kind} {{ name: "{name}" {more} }}' for name in names)


def step(model: str, reads: dict[str, str], writes: dict[str, str]) -> str:
    maps = [f'input_map {{ key: "{k}" value: "{v}" }}' for k, v in reads.items()]
    maps += [f'output_map {{ key: "{k}" value: "{v}" }}' for k, v in writes.items()]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }}'


def ensemble(inputs: str, outputs: str, *steps: str, more: str = "") -> ModelConfig:
    made = f"ensemble_scheduling {{ {' '.join(steps)} }}"
    return config(f'platform: "ensemble" {more} {tensors("input", inputs)} {tensors("output", outputs)} {made}')


COPY = config(tensors("input", "X") + tensors("output", "Y"), "copy")
STREAM = config(tensors("input", "X") + tensors("output", "Y") + "model_transaction_policy { decoupled: true }", "stream")
ADD = config(tensors("input", "LR") + tensors("output", "Y"), "add")
PARTS = {"copy": COPY, "stream": STREAM, "add": ADD}


def plan(given: ModelConfig, **parts: ModelConfig) -> Plan:
    steps: Any = given.scheduling
    names = dict(enumerate(one.model_name for one in steps.step))
    return compiled(given, names, {index: {**PARTS, **parts}[name] for index, name in names.items()})


class Collected:
    """A sink that keeps what comes."""

    def __init__(self) -> None:
        self.sent: list[dict[str, int]] = []
        self.error: MoorageError | None = None
        self.ends = 0

    def send(self, response: InferResponse, *, final: bool) -> None:
        assert not self.ends
        self.sent.append({tensor.name: int(tensor.array.ravel()[0]) for tensor in response.outputs})
        self.ends += final

    def fail(self, error: MoorageError) -> None:
        self.error = error
        self.ends += 1

    def complete(self) -> None:
        self.ends += 1


class Models:
    """Requests to steps wait until a test answers them."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Step, InferRequest, Sink]] = []

    def call(self, step: Step, request: InferRequest, sink: Sink) -> None:
        self.waiting.append((step, request, sink))

    def names(self) -> list[str]:
        return [step.model for step, _, _ in self.waiting]

    def take(self, model: str) -> tuple[dict[str, int], Sink]:
        index = self.names().index(model)
        _, request, sink = self.waiting.pop(index)
        return {name: int(tensor.array.ravel()[0]) for name, tensor in request.inputs.items()}, sink


def tensor(value: int, name: str = "Y") -> Tensor:
    return Tensor(name, DataType.INT32, np.array([value], np.int32))


def answer(sink: Sink, value: int | None, *, final: bool = True, name: str = "Y") -> None:
    sink.send(InferResponse([] if value is None else [tensor(value, name)]), final=final)


def begin(given: Plan, outputs: Sequence[str] = (), **inputs: int) -> tuple[Models, Collected]:
    models, sink = Models(), Collected()
    request = InferRequest("e", {}, outputs=tuple(map(RequestedOutput, outputs)))
    Flow(given, request, sink, models.call).begin({name: tensor(value, name) for name, value in inputs.items()})
    return models, sink


FORK = ensemble(
    "A", "BC", step("copy", {"X": "A"}, {"Y": "m"}), step("left", {"X": "m"}, {"Y": "B"}), step("right", {"X": "m"}, {"Y": "C"})
)


def test_steps_run_when_their_tensors_are_there() -> None:
    models, sink = begin(plan(FORK, left=COPY, right=COPY), A=1)
    assert models.names() == ["copy"]
    given, copy = models.take("copy")
    assert given == {"X": 1}
    answer(copy, 2)
    assert sorted(models.names()) == ["left", "right"]
    given, right = models.take("right")
    assert given == {"X": 2}
    answer(right, 4)
    assert not sink.sent
    answer(models.take("left")[1], 3)
    assert (sink.sent, sink.ends) == ([{"B": 3, "C": 4}], 1)


def test_only_the_steps_run_that_lead_to_what_is_asked_for() -> None:
    models, sink = begin(plan(FORK, left=COPY, right=COPY), ["C"], A=1)
    answer(models.take("copy")[1], 2)
    assert models.names() == ["right"]
    answer(models.take("right")[1], 4)
    assert (sink.sent, sink.ends) == ([{"C": 4}], 1)


def test_a_join_waits_for_both_sides() -> None:
    joined = ensemble(
        "A",
        "B",
        step("copy", {"X": "A"}, {"Y": "l"}),
        step("other", {"X": "A"}, {"Y": "r"}),
        step("add", {"L": "l", "R": "r"}, {"Y": "B"}),
    )
    models, sink = begin(plan(joined, other=COPY), A=1)
    answer(models.take("other")[1], 5)
    assert "add" not in models.names()
    answer(models.take("copy")[1], 6)
    given, add = models.take("add")
    assert given == {"L": 6, "R": 5}
    answer(add, 11)
    assert sink.sent == [{"B": 11}]


CHAIN = ensemble("A", "B", step("copy", {"X": "A"}, {"Y": "m"}), step("last", {"X": "m"}, {"Y": "B"}))


def test_an_error_of_a_step_is_the_answer_and_starts_nothing_more() -> None:
    models, sink = begin(plan(CHAIN, last=COPY), A=1)
    error = ModelError("model 'copy': out of paper")
    models.take("copy")[1].fail(error)
    assert (sink.error, sink.ends, models.names()) == (error, 1, [])


def test_an_error_in_a_response_is_the_answer() -> None:
    models, sink = begin(plan(CHAIN, last=COPY), A=1)
    error = ModelError("no")
    models.take("copy")[1].send(InferResponse([], error=error), final=True)
    assert (sink.error, sink.ends, models.names()) == (error, 1, [])


def test_only_the_first_of_two_errors_is_told() -> None:
    models, sink = begin(plan(FORK, left=COPY, right=COPY), A=1)
    answer(models.take("copy")[1], 2)
    for name in ("left", "right"):
        models.take(name)[1].fail(ModelError(name))
    assert (str(sink.error), sink.ends) == ("left", 1)


def test_a_step_that_is_refused_fails_the_request() -> None:
    sink = Collected()

    def call(step: Step, request: InferRequest, sink: Sink) -> None:
        raise ModelError("queue is full")

    Flow(plan(CHAIN, last=COPY), InferRequest("e", {}), sink, call).begin({"A": tensor(1)})
    assert (str(sink.error), sink.ends) == ("queue is full", 1)


def test_nothing_is_started_after_a_step_that_is_refused() -> None:
    started: list[str] = []

    def call(step: Step, request: InferRequest, sink: Sink) -> None:
        started.append(step.model)
        if step.model != "copy":
            raise ModelError("queue is full")
        answer(sink, 2)

    sink = Collected()
    Flow(plan(FORK, left=COPY, right=COPY), InferRequest("e", {}), sink, call).begin({"A": tensor(1)})
    assert (len(started), sink.ends) == (2, 1)


def test_a_cancelled_request_starts_no_further_step() -> None:
    models, sink, request = Models(), Collected(), InferRequest("e", {})
    Flow(plan(CHAIN, last=COPY), request, sink, models.call).begin({"A": tensor(1)})
    request.cancelled = True
    answer(models.take("copy")[1], 2)
    assert (models.names(), sink.ends) == ([], 1)
    assert "cancelled" in str(sink.error)


def test_an_output_that_no_step_gives_is_an_error() -> None:
    models, sink = begin(plan(CHAIN, last=COPY), A=1)
    answer(models.take("copy")[1], None)
    assert "without values for 'B'" in str(sink.error)
    assert sink.ends == 1


def test_an_optional_input_that_is_left_out_is_left_out_for_the_step() -> None:
    models, sink = Models(), Collected()
    chain = ensemble("AO", "B", step("add", {"L": "A", "R": "O"}, {"Y": "B"}))
    Flow(plan(chain), InferRequest("e", {}), sink, models.call).begin({"A": tensor(1), "O": None})
    assert models.take("add")[0] == {"L": 1}


# Decoupled steps

STREAMED = ensemble("A", "B", step("stream", {"X": "A"}, {"Y": "m"}), step("copy", {"X": "m"}, {"Y": "B"}))


def test_each_response_of_a_decoupled_step_goes_on_by_itself() -> None:
    streamed = plan(STREAMED)
    assert streamed.decoupled
    models, sink = begin(streamed, A=1)
    stream = models.take("stream")[1]
    answer(stream, 10, final=False)
    answer(stream, 20, final=False)
    second = models.waiting.pop(1)
    answer(second[2], 21)
    answer(models.take("copy")[1], 11)
    assert (sink.sent, sink.ends) == ([{"B": 21}, {"B": 11}], 0)
    answer(stream, 30, final=False)
    stream.complete()
    assert sink.ends == 0
    answer(models.take("copy")[1], 31)
    assert (sink.sent[-1], sink.ends) == ({"B": 31}, 1)


def test_a_decoupled_step_without_a_response_ends_the_request() -> None:
    models, sink = begin(plan(STREAMED), A=1)
    models.take("stream")[1].complete()
    assert (sink.sent, sink.error, sink.ends) == ([], None, 1)


def test_what_is_there_once_joins_every_response_of_a_decoupled_step() -> None:
    joined = ensemble(
        "A",
        "B",
        step("stream", {"X": "A"}, {"Y": "s"}),
        step("copy", {"X": "A"}, {"Y": "once"}),
        step("add", {"L": "s", "R": "once"}, {"Y": "B"}),
    )
    models, sink = begin(plan(joined), A=1)
    stream = models.take("stream")[1]
    answer(stream, 10, final=False)
    assert "add" not in models.names()
    answer(models.take("copy")[1], 5)
    answer(stream, 20)
    assert [models.take("add")[0], models.take("add")[0]] == [{"L": 10, "R": 5}, {"L": 20, "R": 5}]
    assert sink.ends == 0


def test_responses_of_different_decoupled_steps_cannot_be_joined() -> None:
    joined = ensemble(
        "A",
        "B",
        step("stream", {"X": "A"}, {"Y": "l"}),
        step("other", {"X": "A"}, {"Y": "r"}),
        step("add", {"L": "l", "R": "r"}, {"Y": "B"}),
    )
    with pytest.raises(InvalidArgument, match=r"ensemble 'e': step 2 .*different decoupled models"):
        plan(joined, other=STREAM)
    outputs = ensemble("A", "BC", step("stream", {"X": "A"}, {"Y": "B"}), step("other", {"X": "A"}, {"Y": "C"}))
    with pytest.raises(InvalidArgument, match="its outputs would join"):
        plan(outputs, other=STREAM)


def test_many_threads() -> None:
    """Every step ends on a thread of its own: nothing is lost, nothing is told twice."""
    width = 8
    middles = [f"m{number}" for number in range(width)]
    steps = [step("copy", {"X": "A"}, {"Y": middle}) for middle in middles]
    wide = config(" ".join([*(tensors("input", [name]) for name in middles), tensors("output", "Y")]), "wide")
    given = plan(ensemble("A", "B", *steps, step("wide", {name: name for name in middles}, {"Y": "B"})), wide=wide)

    def call(step: Step, request: InferRequest, sink: Sink) -> None:
        threading.Thread(target=answer, args=(sink, 7)).start()

    for _ in range(50):
        done, sink = threading.Event(), Collected()
        end: Callable[..., None] = sink.send

        def send(response: InferResponse, *, final: bool, end: Any = end, done: Any = done) -> None:
            end(response, final=final)
            done.set()

        sink.send = send  # type: ignore[method-assign]
        Flow(given, InferRequest("e", {}), sink, call).begin({"A": tensor(1)})
        assert done.wait(10)
        assert (sink.sent, sink.ends) == ([{"B": 7}], 1)


# What does not fit together

WIDE = 'input { name: "X" data_type: TYPE_INT32 dims: [ 3 ] } output { name: "Y" data_type: TYPE_INT32 dims: [ 3 ] }'


@pytest.mark.parametrize(
    "part,words",
    [
        (config(WIDE, "copy"), r"tensor 'A' has shape \[3\] for model 'copy' and \[1\] for ensemble 'e'"),
        (config(WIDE.replace("INT32", "FP32"), "copy"), "'A' is FP32 for model 'copy' and INT32 for ensemble 'e'"),
        (config(tensors("input", "Z") + tensors("output", "Y")), "the model has no input 'X', which the input_map names"),
        (config(tensors("input", "X") + tensors("output", "Z")), "the model has no output 'Y', which the output_map names"),
        (config(tensors("input", "XZ") + tensors("output", "Y")), "input 'Z' of the model is not in the input_map"),
    ],
)
def test_parts_that_do_not_fit(part: ModelConfig, words: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"ensemble 'e': step 0 \(model 'copy'\).*{words}"):
        plan(ensemble("A", "B", step("copy", {"X": "A"}, {"Y": "B"})), copy=part)


def test_an_optional_input_of_a_part_need_not_be_mapped() -> None:
    part = config(
        tensors("input", "X")
        + tensors("input", "Z", "data_type: TYPE_INT32 dims: [ 1 ] optional: true")
        + tensors("output", "Y")
    )
    plan(ensemble("A", "B", step("copy", {"X": "A"}, {"Y": "B"})), copy=part)


@pytest.mark.parametrize(
    "ensemble_batch,part_batch,fits", [(8, 4, False), (4, 8, True), (4, 4, True), (0, 4, True), (4, 0, True)]
)
def test_batch_sizes(ensemble_batch: int, part_batch: int, fits: bool) -> None:
    part = config(f"max_batch_size: {part_batch} {tensors('input', 'X')} {tensors('output', 'Y')}")
    given = ensemble("A", "B", step("copy", {"X": "A"}, {"Y": "B"}), more=f"max_batch_size: {ensemble_batch}")
    if fits:
        plan(given, copy=part)
    else:
        with pytest.raises(InvalidArgument, match=r"takes batches of at most 4, the ensemble of 8"):
            plan(given, copy=part)


@pytest.mark.parametrize(
    "shape,dims,batches,expected",
    [
        ((2, 3), (3,), True, (2, 3)),
        ((3,), (3,), True, (1, 3)),
        ((1, 3), (3,), False, (3,)),
        ((2, 3), (3,), False, (2, 3)),
        ((2, 3), (-1, 3), False, (2, 3)),
    ],
)
def test_batch_dimensions_come_and_go(
    shape: tuple[int, ...], dims: tuple[int, ...], batches: bool, expected: tuple[int, ...]
) -> None:
    given = Tensor("a", DataType.INT32, np.zeros(shape, np.int32))
    found = fitted(given, "b", Slot(DataType.INT32, dims, batches))
    assert (found.name, found.shape) == ("b", expected)
