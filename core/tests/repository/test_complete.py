"""Completing a configuration from what the model file declares."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from moorage._repository.complete import check, fill
from moorage.backend import Signature, TensorSpec
from moorage.config import parse_text
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import DynamicBatching, ModelConfig, ModelInput, ModelOutput, SequenceBatching, TensorReshape
from moorage.types import DataType

FP32, INT64 = DataType.FP32, DataType.INT64


def signature(inputs: dict[str, tuple[int, ...] | None], outputs: dict[str, tuple[int, ...] | None]) -> Signature:
    return Signature(
        tuple(TensorSpec(name, FP32, shape) for name, shape in inputs.items()),
        tuple(TensorSpec(name, INT64, shape) for name, shape in outputs.items()),
    )


BATCHING = signature({"X": (-1, 16)}, {"Y": (-1, 4, -1)})
FIXED = signature({"X": (1, 16)}, {"Y": (-1, 4)})


def filled(text: str, model: Signature = BATCHING, default: int = 4) -> ModelConfig:
    return fill(parse_text(text), model, default)


def test_an_empty_configuration_of_a_model_that_batches() -> None:
    config = filled("")
    assert config.max_batch_size == 4
    assert config.scheduling == DynamicBatching()
    assert config.input == (ModelInput(name="X", data_type=FP32, dims=(16,)),)
    assert config.output == (ModelOutput(name="Y", data_type=INT64, dims=(4, -1)),)


@pytest.mark.parametrize("most, size", [(0, 0), (1, 1), (32, 32), (None, 4)])
def test_the_file_may_say_how_large_a_batch_may_be(most: int | None, size: int) -> None:
    assert filled("", evolve(BATCHING, max_batch_size=most)).max_batch_size == size
    assert filled("max_batch_size: 2", evolve(BATCHING, max_batch_size=most)).max_batch_size == 2


def test_an_empty_configuration_of_a_model_that_does_not() -> None:
    config = filled("", FIXED)
    assert (config.max_batch_size, config.scheduling) == (0, None)
    assert config.input[0].dims == (1, 16)
    assert config.output[0].dims == (-1, 4)


@pytest.mark.parametrize("default, size, batching", [(128, 128, True), (1, 1, False), (0, 0, False), (-5, 0, False)])
def test_the_default_batch_size(default: int, size: int, batching: bool) -> None:
    config = filled("", default=default)
    assert config.max_batch_size == size
    assert isinstance(config.scheduling, DynamicBatching) is batching
    assert config.input[0].dims == ((16,) if size else (-1, 16))


def test_a_batch_size_that_is_given_stays() -> None:
    config = filled("max_batch_size: 8")
    assert (config.max_batch_size, config.scheduling) == (8, DynamicBatching())
    assert config.output[0].dims == (4, -1)
    none = filled("max_batch_size: 0")
    assert (none.max_batch_size, none.scheduling) == (0, None)
    assert none.input[0].dims == (-1, 16)


def test_preferred_sizes_without_a_maximum_get_the_default() -> None:
    config = filled("dynamic_batching { preferred_batch_size: [2] }", default=128)
    assert config.max_batch_size == 128
    assert config.scheduling == DynamicBatching(preferred_batch_size=(2,))


def test_a_scheduler_that_is_given_stays() -> None:
    assert isinstance(filled("sequence_batching { direct { } }").scheduling, SequenceBatching)


def test_gaps_are_filled_by_name() -> None:
    config = filled('input { name: "X" dims: 8 } output { name: "Y" data_type: TYPE_INT32 label_filename: "l" }')
    assert config.input == (ModelInput(name="X", data_type=FP32, dims=(8,)),)
    assert config.output == (ModelOutput(name="Y", data_type=DataType.INT32, dims=(4, -1), label_filename="l"),)


def test_inputs_are_added_and_outputs_only_when_none_is_given() -> None:
    model = signature({"A": (-1, 1), "B": (-1, 2)}, {"C": (-1, 3), "D": (-1, 4)})
    config = filled('input { name: "B" } output { name: "D" }', model)
    assert [tensor.name for tensor in config.input] == ["B", "A"]
    assert [tensor.name for tensor in config.output] == ["D"]


@pytest.mark.parametrize("dims, size", [("16", 4), ("[-1, 16]", 0), ("[-1, -1, 16]", 0)])
def test_dims_that_are_given_decide_whether_it_batches(dims: str, size: int) -> None:
    assert filled(f'input {{ name: "X" dims: {dims} }}').max_batch_size == size


def test_a_complete_configuration_is_not_given_a_batcher() -> None:
    io = 'input { name: "X" data_type: TYPE_FP32 dims: 16 } output { name: "Y" data_type: TYPE_INT64 dims: [4, -1] }'
    assert filled(f"max_batch_size: 8 {io}").scheduling is None


def test_tensors_of_no_dimension_are_reshaped() -> None:
    config = filled("", signature({"X": (-1,)}, {"Y": (-1,)}))
    assert config.max_batch_size == 4
    assert config.input[0] == ModelInput(name="X", data_type=FP32, dims=(1,), reshape=TensorReshape(()))
    scalar = filled("", signature({"X": ()}, {"Y": (3,)}))
    assert scalar.max_batch_size == 0
    assert scalar.input[0].dims == (1,)
    assert scalar.input[0].reshape == TensorReshape(())


def test_an_unknown_rank_is_left_open() -> None:
    config = filled("", signature({"X": None}, {"Y": (-1, 2)}))
    assert (config.max_batch_size, config.input[0].dims, config.input[0].data_type) == (0, (), FP32)


def test_unknown_types_are_left_open() -> None:
    model = Signature((TensorSpec("X", None, (-1, 2)),), ())
    assert filled("", model).input[0].data_type is DataType.INVALID


def test_inputs_that_the_server_feeds_are_not_listed() -> None:
    text = """
    sequence_batching {
      control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [0, 1] } }
      state { input_name: "SIN" output_name: "SOUT" data_type: TYPE_FP32 dims: 1 }
    }
    batch_input { kind: BATCH_ELEMENT_COUNT target_name: "COUNT" data_type: TYPE_FP32 source_input: "X" }
    """
    model = signature({"X": (-1, 1), "START": (1,), "SIN": (-1, 1), "COUNT": (1,)}, {"Y": (-1, 1), "SOUT": (-1, 1)})
    config = filled(text, model)
    assert [tensor.name for tensor in config.input] == ["X"]
    assert [tensor.name for tensor in config.output] == ["Y"]
    assert config.max_batch_size == 4
    assert check(parse_text(text).with_config(config), model) == []


SHAPES = st.lists(st.sampled_from([-1, 1, 3, 16]), max_size=3).map(tuple)
NAMES = st.sampled_from(["A", "B", "C"])
SIGNATURES = st.builds(signature, st.dictionaries(NAMES, SHAPES, min_size=1), st.dictionaries(NAMES, SHAPES, min_size=1))


@given(SIGNATURES, st.integers(0, 8))
def test_what_is_filled_in_fits(model: Signature, default: int) -> None:
    parsed = parse_text("")
    config = fill(parsed, model, default)
    assert check(parsed.with_config(config), model) == []
    assert [tensor.name for tensor in config.input] == [spec.name for spec in model.inputs]
    assert all(tensor.dims for tensor in config.input)
    assert all(tensor.dims for tensor in config.output)


@given(SIGNATURES, st.integers(0, 8), st.integers(0, 8), st.lists(NAMES, unique=True))
def test_what_is_given_stays(model: Signature, default: int, size: int, names: list[str]) -> None:
    inputs = tuple(ModelInput(name=name, dims=(7,), data_type=DataType.BOOL) for name in names)
    config = ModelConfig(max_batch_size=size, input=inputs)
    done = fill(ParsedConfig(config, given=frozenset({"max_batch_size", "input"})), model, default)
    assert done.max_batch_size == size
    assert done.input[: len(names)] == inputs
    again = fill(ParsedConfig(done, given=frozenset({"max_batch_size", "input"})), model, default)
    assert again == evolve(done, scheduling=again.scheduling)
