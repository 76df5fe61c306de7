"""Batch sizes and dims: what the file has, what the configuration asks for, what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from moorage.backend import Signature, TensorSpec
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import ConfigError, ModelError, RequestError, Unsupported
from moorage.types import DataType

FP32 = DataType.FP32


def config(batch: int = 0, **dims: tuple[int, ...]) -> ModelConfig:
    return ModelConfig(max_batch_size=batch, input=tuple(ModelInput(name, FP32, dims=one) for name, one in dims.items()))


def shapes(model: Any) -> list[tuple[int, ...] | None]:
    declared = model.signature()
    return [spec.shape for spec in (*declared.inputs, *declared.outputs)]


def test_signature_of_open_sizes(load: Callable[..., Any]) -> None:
    assert load("conv_open").signature() == Signature(
        (TensorSpec("IMAGE", FP32, (-1, 1, -1, -1)),), (TensorSpec("BLURRED", FP32, (-1, 1, -1, -1)),)
    )


def test_sizes_with_bounds_are_open(load: Callable[..., Any]) -> None:
    assert shapes(load("bounded")) == [(-1, 3)] * 4


def test_without_a_layout_the_first_dimension_is_not_the_batch(load: Callable[..., Any]) -> None:
    assert load("add_sub").signature().max_batch_size is None
    assert load("add_sub_plain").signature().max_batch_size == 0


def test_a_layout_with_a_batch_opens_a_fixed_first_dimension(load: Callable[..., Any], instance: Callable[..., Any]) -> None:
    assert shapes(load("conv")) == [(-1, 1, 5, 5)] * 2
    assert instance("add_sub_static", config(8)).run(sides(5), ["GAP"])["GAP"].shape == (5, 3)


def test_whole_shapes_in_the_configuration_leave_it_fixed(load: Callable[..., Any]) -> None:
    assert shapes(load("conv", config(IMAGE=(1, 1, 5, 5)))) == [(1, 1, 5, 5)] * 2


def test_a_model_that_cannot_batch_says_what_to_write(load: Callable[..., Any]) -> None:
    assert shapes(load("square")) == [(1, 4), (2, 2)]
    with pytest.raises(ModelError, match=r"model 'square': max_batch_size is 8, but .*X \[1,4\], Y \[2,2\].*max_batch_size: 0"):
        load("square", config(8))


def sides(rows: int) -> dict[str, np.ndarray]:
    array = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    return {"LEFT": array, "RIGHT": array}


def test_a_fixed_batch_is_filled_up_if_that_is_allowed(instance: Callable[..., Any], load: Callable[..., Any]) -> None:
    settings = {"SKIP_OV_DYNAMIC_BATCHSIZE": "yes", "ENABLE_BATCH_PADDING": "YES"}
    assert shapes(load("add_sub", config(4), **settings)) == [(-1, 3)] * 4
    adder = instance("add_sub", config(4), **settings)
    for rows in (1, 4, 3):
        np.testing.assert_array_equal(adder.run(sides(rows), ["TOTAL"])["TOTAL"], sides(rows)["LEFT"] * 2)


def test_a_fixed_batch_takes_nothing_else(instance: Callable[..., Any]) -> None:
    adder = instance("add_sub", config(4), SKIP_OV_DYNAMIC_BATCHSIZE="YES")
    assert adder.run(sides(4), ["TOTAL"])["TOTAL"].shape == (4, 3)
    with pytest.raises(RequestError, match=r"model 'add_sub' runs batches of 4, but has got 3.*ENABLE_BATCH_PADDING"):
        adder.run(sides(3), ["TOTAL"])


def test_padding_does_not_hide_inputs_that_differ(instance: Callable[..., Any]) -> None:
    adder = instance("add_sub", config(4), SKIP_OV_DYNAMIC_BATCHSIZE="YES", ENABLE_BATCH_PADDING="YES")
    for inputs in ({**sides(2), "LEFT": sides(3)["LEFT"]}, sides(5), {}):
        with pytest.raises(RequestError, match="runs batches of 4"):
            adder.run(inputs, ["TOTAL"])


def test_a_model_that_takes_no_other_batch_runs_that_one(instance: Callable[..., Any]) -> None:
    made = instance("fixed_rows", config(2), ENABLE_BATCH_PADDING="YES")
    given = np.arange(4, dtype=np.float32).reshape(1, 4)
    np.testing.assert_array_equal(made.run({"X": given}, ["Y"])["Y"], given)


def test_reshape_gives_the_inputs_the_dims_of_the_configuration(load: Callable[..., Any], instance: Callable[..., Any]) -> None:
    wanted = config(IMAGE=(-1, 1, -1, 7))
    assert shapes(load("conv", wanted, RESHAPE_IO_LAYERS="yes")) == [(-1, 1, -1, 7)] * 2
    assert shapes(load("conv_open", config(4, IMAGE=(1, 6, 7)), RESHAPE_IO_LAYERS="YES")) == [(-1, 1, 6, 7)] * 2


def test_dims_that_the_model_cannot_take_are_a_config_error(load: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match=r"model 'conv': parameters\.RESHAPE_IO_LAYERS: the model cannot take these dims"):
        load("conv", config(IMAGE=(1, 2, 5, 5)), RESHAPE_IO_LAYERS="YES")


def test_an_input_without_a_rank_needs_dims(load: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match=r"model 'unranked': input 'X' has any number of dimensions.*RESHAPE_IO_LAYERS to YES"):
        load("unranked")
    assert shapes(load("unranked", config(X=(-1, 4)), RESHAPE_IO_LAYERS="YES")) == [(-1, 4)] * 2


def test_tensors_without_names_are_called_like_their_operations(instance: Callable[..., Any], load: Callable[..., Any]) -> None:
    declared = load("no_names").signature()
    assert [spec.name for spec in declared.inputs] == ["given"]
    names = [spec.name for spec in declared.outputs]
    assert len(set(names)) == 2
    results = instance("no_names").run({"given": np.ones((1, 2), np.float32)}, names)
    assert [results[name].tolist() for name in names] == [[[2, 2]], [[2, 2]]]


def test_a_type_that_requests_cannot_carry_is_refused_by_name(load: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported, match="model 'four_bits': input 'X' has type u4"):
        load("four_bits")
