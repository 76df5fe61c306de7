"""Running plans, on simulated GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from fake_tensorrt import plan
from simulated_gpus import GPU_0, GPU_1, Simulation, add_sub, identity, tensor

from moorage.backend import Placement
from moorage.config.schema import InstanceKind, ModelConfig, ModelPriority, OptimizationPolicy
from moorage.errors import ConfigError, ModelError, RequestError, Unsupported
from moorage.types import DataType

Make = Callable[..., Any]
TWO_PROFILES = [
    {name: [[1, 3], [2, 3], [4, 3]] for name in ("LEFT", "RIGHT")},
    {name: [[3, 3], [16, 3], [32, 3]] for name in ("LEFT", "RIGHT")},
]


def sides(rows: int) -> dict[str, np.ndarray]:
    left = np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    return {"LEFT": left, "RIGHT": left[::-1] * 2}


def on(place: Placement, *profiles: str) -> Placement:
    return evolve(place, profiles=profiles)


@pytest.mark.parametrize("rows", [1, 8, 3])
def test_adds_and_subtracts(instance: Make, rows: int) -> None:
    inputs = sides(rows)
    results = instance(add_sub()).run(inputs, ["TOTAL", "GAP"])
    np.testing.assert_array_equal(results["TOTAL"], inputs["LEFT"] + inputs["RIGHT"])
    np.testing.assert_array_equal(results["GAP"], inputs["LEFT"] - inputs["RIGHT"])


def test_results_are_not_overwritten_by_later_runs(instance: Make) -> None:
    adder = instance(add_sub())
    first = adder.run(sides(4), ["TOTAL"])["TOTAL"]
    kept = first.copy()
    adder.run({name: array + 1 for name, array in sides(4).items()}, ["TOTAL"])
    np.testing.assert_array_equal(first, kept)


def test_memory_grows_with_the_runs_and_is_kept(instance: Make, simulation: Simulation) -> None:
    adder = instance(add_sub())
    for rows in (1, 8, 2, 8):
        adder.run(sides(rows), ["GAP"])
    assert sorted(block.nbytes for block, _ in simulation.cuda.blocks.values()) == [8 * 3 * 4] * 4


@pytest.mark.parametrize(
    "inputs, told",
    [
        ({"LEFT": np.zeros((1, 3), np.float32)}, "input 'RIGHT' is missing"),
        ({**sides(1), "RIGHT": np.zeros((1, 3))}, "input 'RIGHT' must be FP32, but is float64"),
        ({**sides(1), "RIGHT": np.zeros((1, 4), np.float32)}, r"input 'RIGHT' has shape \[1, 4\], the model takes \[-1, 3\]"),
        ({**sides(1), "RIGHT": np.zeros(3, np.float32)}, r"input 'RIGHT' has shape \[3\]"),
        (sides(9), r"no optimization profile takes these shapes \(profile 0: input 'LEFT' is \[9, 3\], not within \[1, 3\] to"),
        (sides(0), "no optimization profile takes these shapes"),
    ],
)
def test_requests_that_do_not_fit_are_refused_before_they_reach_the_gpu(
    instance: Make, simulation: Simulation, inputs: Any, told: str
) -> None:
    with pytest.raises(RequestError, match=f"model 'm': {told}"):
        instance(add_sub()).run(inputs, ["TOTAL"])
    assert not simulation.cuda.blocks


def test_signature_and_the_largest_batch(load: Make) -> None:
    declared = load(add_sub(most=8)).signature()
    assert [(spec.name, spec.datatype, spec.shape) for spec in declared.inputs] == [
        ("LEFT", DataType.FP32, (-1, 3)),
        ("RIGHT", DataType.FP32, (-1, 3)),
    ]
    assert [spec.name for spec in declared.outputs] == ["TOTAL", "GAP"]
    assert declared.max_batch_size == 8


def test_the_largest_batch_is_that_of_the_profiles_in_use(load: Make) -> None:
    content = add_sub(profiles=TWO_PROFILES)
    assert load(content).signature().max_batch_size == 4
    assert load(content, places=(on(GPU_0, "1"),)).signature().max_batch_size == 32
    assert load(content, places=(on(GPU_0, "0"), on(GPU_1, "1"))).signature().max_batch_size == 32


@pytest.mark.parametrize("rows, profile", [(1, 0), (4, 0), (3, 0), (5, 1), (32, 1)])
def test_the_profile_that_suits_the_shapes_best_is_used(instance: Make, rows: int, profile: int) -> None:
    adder = instance(add_sub(profiles=TWO_PROFILES), places=(on(GPU_0, "0", "1", "0"),))
    assert [context.profile for context in adder._contexts] == [0, 1]
    adder.run(sides(rows), ["GAP"])
    assert [bool(context.context._shapes) for context in adder._contexts] == [profile == 0, profile == 1]


def test_what_no_profile_takes_is_told_of_each(instance: Make) -> None:
    adder = instance(add_sub(profiles=TWO_PROFILES), places=(on(GPU_0, "0", "1"),))
    with pytest.raises(RequestError, match=r"profile 0: input 'LEFT' is \[40, 3\].*profile 1: input 'LEFT' is \[40, 3\]"):
        adder.run(sides(40), ["GAP"])


def test_a_profile_that_is_not_there_is_a_config_error(load: Make) -> None:
    with pytest.raises(
        ConfigError, match=r"model 'm': instance_group\.profile: the plan has no optimization profile 1 .*0 to 0"
    ):
        load(add_sub(), places=(on(GPU_0, "1"),))


def test_each_gpu_has_an_engine_of_the_plan_that_is_for_it(load: Make, simulation: Simulation) -> None:
    files = {"old.plan": add_sub(most=2), "new.plan": add_sub(most=6)}
    names = {(InstanceKind.KIND_GPU, 0): "old.plan", (InstanceKind.KIND_GPU, 1): "new.plan"}
    model = load(files, places=(GPU_0, GPU_0, GPU_1), filenames=names)
    assert [engine["device"] for engine in simulation.trt.engines] == [0, 1]
    first, second = model.instance(GPU_0), model.instance(GPU_1)
    assert second.run(sides(6), ["GAP"])["GAP"].shape == (6, 3)
    with pytest.raises(RequestError, match=r"is \[6, 3\], not within \[1, 3\] to \[2, 3\]"):
        first.run(sides(6), ["GAP"])
    assert first.run(sides(2), ["GAP"])["GAP"].shape == (2, 3)
    first.close()
    second.close()


def test_instances_on_one_gpu_share_its_engine(load: Make, simulation: Simulation) -> None:
    model = load(add_sub(), places=(GPU_0, GPU_0))
    one, other = model.instance(GPU_0), model.instance(GPU_0)
    assert len(simulation.trt.engines) == 1
    assert len(simulation.cuda.streams) == 2
    one.close()
    assert other.run(sides(1), ["GAP"])["GAP"].shape == (1, 3)
    other.close()


def test_a_gpu_that_is_added_later_gets_its_engine_then(load: Make, simulation: Simulation) -> None:
    made = load(add_sub()).instance(GPU_1)
    assert [engine["device"] for engine in simulation.trt.engines] == [0, 1]
    made.close()


@pytest.mark.parametrize("dtype", ["FLOAT", "HALF", "BF16", "INT8", "UINT8", "INT32", "INT64", "BOOL"])
def test_every_type_goes_through_to_the_bit(instance: Make, dtype: str) -> None:
    kind = instance(identity(dtype))._inputs[0].datatype
    given = np.arange(6).reshape(2, 3).astype(kind.numpy)
    for array in (given, given[:, ::-1], given[:1]):
        result = instance(identity(dtype)).run({"X": array}, ["Y"])["Y"]
        assert (result.dtype, result.tobytes()) == (array.dtype, np.ascontiguousarray(array).tobytes())


def test_outputs_whose_size_is_known_afterwards(instance: Make) -> None:
    sizes = [[1], [8], [1000]]
    tensors = [tensor("X", "INPUT", "FLOAT", (-1,)), tensor("WHERE", "OUTPUT", "INT64", (-1,))]
    finder = instance(plan("nonzero", tensors, [{"X": sizes}]))
    for values in ([0, 1, 0, 2], [0, 0], list(range(500)), [5]):
        found = finder.run({"X": np.array(values, np.float32)}, ["WHERE"])["WHERE"]
        assert found.tolist() == np.flatnonzero(values).tolist()


GRID = plan(
    "grid",
    [
        tensor("SIZE", "INPUT", "INT64", (2,), location="HOST"),
        tensor("GRID", "OUTPUT", "FLOAT", (-1, -1)),
        tensor("AGAIN", "OUTPUT", "INT64", (2,), location="HOST"),
    ],
    [{"SIZE": [[1, 1], [2, 2], [9, 9]]}],
)


def test_shapes_as_inputs_and_outputs(instance: Make) -> None:
    results = instance(GRID).run({"SIZE": np.array([2, 3])}, ["GRID", "AGAIN"])
    assert results["GRID"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert results["AGAIN"].tolist() == [2, 3]


def test_values_of_a_shape_are_held_to_the_profile(instance: Make) -> None:
    with pytest.raises(RequestError, match=r"profile 0: input 'SIZE' is \[2, 10\], not within \[1, 1\] to \[9, 9\]"):
        instance(GRID).run({"SIZE": np.array([2, 10])}, ["GRID"])


def test_a_shape_and_batches_do_not_go_together(load: Make) -> None:
    assert load(GRID).signature().max_batch_size == 0
    with pytest.raises(Unsupported, match="model 'm': input 'SIZE' is a shape, which models that batch cannot have"):
        load(GRID, config=ModelConfig(max_batch_size=4))


@pytest.mark.parametrize(
    "changed, told",
    [
        ({"dtype": "FP8"}, "input 'X' has type FP8, which requests cannot carry"),
        ({"format": "Two wide channel vectorized row major FP16 format"}, "input 'X' has the format 'Two wide channel"),
    ],
)
def test_what_requests_cannot_carry_is_refused_by_name(load: Make, changed: dict[str, str], told: str) -> None:
    tensors = [{**tensor("X", "INPUT", "FLOAT", (2,)), **changed}, tensor("Y", "OUTPUT", "FLOAT", (2,))]
    with pytest.raises(Unsupported, match=f"model 'm': {told}"):
        load(plan("identity", tensors))


def test_an_error_of_tensorrt_is_told_in_its_own_words(instance: Make, load: Make) -> None:
    with pytest.raises(ModelError, match="model 'm': TensorRT cannot run: Cask convolution execution"):
        instance(add_sub(fails=True)).run(sides(1), ["GAP"])
    with pytest.raises(ModelError, match="model 'm': TensorRT cannot make an execution context: out of memory"):
        instance(add_sub(no_context=True))
    with pytest.raises(RequestError, match=r"input 'LEFT' of shape \[1, 3\] is refused: it gives no reason"):
        instance(add_sub(refuses_shapes=True)).run(sides(1), ["GAP"])
    with pytest.raises(
        ModelError, match=r"TensorRT 11\.4\.0\.106 cannot make an engine of .*: Magic tag does not match; a plan runs"
    ):
        load(add_sub()[:100])


def test_an_error_on_the_gpu_is_the_model_s(instance: Make, simulation: Simulation) -> None:
    adder = instance(add_sub())
    simulation.cuda.broken = "run"
    with pytest.raises(ModelError, match="model 'm': CUDA error 700: an illegal memory access"):
        adder.run(sides(1), ["GAP"])
    simulation.cuda.broken = ""
    assert adder.run(sides(1), ["GAP"])["GAP"].shape == (1, 3)


def test_too_little_memory_says_how_much_was_wanted(instance: Make, simulation: Simulation) -> None:
    adder = instance(add_sub())
    simulation.cuda.memory = 20
    with pytest.raises(ModelError, match="model 'm': CUDA error 2 for 96 bytes of memory on the GPU: out of memory"):
        adder.run(sides(8), ["GAP"])


@pytest.mark.parametrize(
    "priority, number", [(ModelPriority.PRIORITY_MAX, -5), (ModelPriority.PRIORITY_MIN, 0), (ModelPriority.PRIORITY_DEFAULT, 0)]
)
def test_the_priority_is_that_of_the_stream(
    instance: Make, simulation: Simulation, priority: ModelPriority, number: int
) -> None:
    instance(add_sub(), config=ModelConfig(optimization=OptimizationPolicy(priority=priority)))
    assert simulation.cuda.priorities == [number]


def test_a_core_for_deep_learning_is_chosen(load: Make, simulation: Simulation) -> None:
    load(add_sub(), places=(evolve(GPU_0, secondary_devices=(("KIND_NVDLA", 1),)),))
    assert simulation.trt.engines[0]["dla"] == 1
    with pytest.raises(ModelError, match="secondary_devices asks for NVDLA core 2, but the device has 2"):
        load(add_sub(), places=(evolve(GPU_0, secondary_devices=(("KIND_NVDLA", 2),)),))
