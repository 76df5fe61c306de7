from __future__ import annotations

import threading
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moorage.backend import Placement
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ModelError, RequestError
from moorage.testing import Runner
from moorage_openvino.faults import reason, run_error
from moorage_openvino.tensors import texts

ON_CPU = Placement("m", InstanceKind.KIND_CPU)
ONE = np.ones((1, 3), np.float32)


def test_blurs_an_image_of_any_size(instance: Callable[..., Any]) -> None:
    blur = instance("conv_open")
    for height, width in ((5, 5), (1, 1), (64, 40), (5, 5)):
        image = np.zeros((2, 1, height, width), np.float32)
        image[:, 0, height // 2, width // 2] = 9
        blurred = blur.run({"IMAGE": image}, ["BLURRED"])["BLURRED"]
        assert blurred.shape == image.shape
        assert blurred[1].max() == pytest.approx(1)


def test_no_input_of_an_earlier_request_is_used(instance: Callable[..., Any]) -> None:
    adder = instance("add_sub")
    adder.run({"LEFT": 7 * ONE, "RIGHT": 9 * ONE}, ["TOTAL"])
    with pytest.raises(RequestError, match="model 'add_sub': input 'RIGHT' is missing"):
        adder.run({"LEFT": ONE}, ["TOTAL"])


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.float16])
def test_numbers_of_another_type_are_refused_not_cast(instance: Callable[..., Any], dtype: Any) -> None:
    with pytest.raises(RequestError, match=f"model 'add_sub': input 'RIGHT' must be FP32, but is {np.dtype(dtype)}"):
        instance("add_sub").run({"LEFT": ONE, "RIGHT": ONE.astype(dtype)}, ["TOTAL"])


@pytest.mark.parametrize("shape", [(1, 2), (3,), (1, 3, 1), ()])
def test_a_shape_that_does_not_fit_is_refused(instance: Callable[..., Any], shape: Any) -> None:
    adder = instance("add_sub")
    with pytest.raises(RequestError, match=r"model 'add_sub': input 'RIGHT' of shape .* does not fit the model"):
        adder.run({"LEFT": ONE, "RIGHT": np.ones(shape, np.float32)}, ["TOTAL"])
    assert adder.run({"LEFT": ONE, "RIGHT": ONE}, ["TOTAL"])["TOTAL"].sum() == 6


def test_inputs_that_do_not_go_together_are_the_request_s_fault(instance: Callable[..., Any]) -> None:
    adder = instance("add_sub")
    for _ in range(3):
        with pytest.raises(RequestError, match=r"model 'add_sub'.*mismatch"):
            adder.run({"LEFT": np.ones((2, 3), np.float32), "RIGHT": np.ones((3, 3), np.float32)}, ["TOTAL"])
        assert adder.run({"LEFT": ONE, "RIGHT": ONE}, ["TOTAL"])["TOTAL"].shape == (1, 3)


@pytest.mark.parametrize("rows, fits", [(0, False), (1, True), (8, True), (9, False)])
def test_bounded_sizes_are_held_to(instance: Callable[..., Any], rows: int, fits: bool) -> None:
    array = np.ones((rows, 3), np.float32)
    adder = instance("bounded")
    if fits:
        assert adder.run({"LEFT": array, "RIGHT": array}, ["GAP"])["GAP"].shape == (rows, 3)
    else:
        with pytest.raises(RequestError, match=r"does not fit the model.*1\.\.8"):
            adder.run({"LEFT": array, "RIGHT": array}, ["GAP"])


def test_what_it_gives_is_not_the_input_nor_overwritten(instance: Callable[..., Any]) -> None:
    same = instance("identity_fp32")
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    first = same.run({"X": given}, ["Y"])["Y"]
    same.run({"X": given + 1}, ["Y"])
    given[:] = -1
    np.testing.assert_array_equal(first, np.arange(6).reshape(2, 3))


def test_bf16_is_not_overwritten_either(instance: Callable[..., Any]) -> None:
    same = instance("identity_bf16")
    given = np.ones((2, 3), ml_dtypes.bfloat16)
    first = same.run({"X": given}, ["Y"])["Y"]
    given[:] = 7
    assert (first == 1).all()


def test_inputs_are_not_written_to(instance: Callable[..., Any]) -> None:
    for name in ("conv_open", "running_sum", "no_names"):
        made = instance(name)
        shape = (1, 1, 4, 4) if name == "conv_open" else (1, 2)
        array = np.random.default_rng(1).random(shape, np.float32)
        before = array.copy()
        for writer in made._writers:
            made.run({writer.port.name: array}, list(made._outputs))
        np.testing.assert_array_equal(array, before)


def test_a_state_does_not_pass_from_one_request_to_the_next(instance: Callable[..., Any]) -> None:
    adder = instance("running_sum")
    for _ in range(3):
        assert adder.run({"X": np.ones((1, 2), np.float32)}, ["Y"])["Y"].tolist() == [[1, 1]]


def test_bf16_keeps_its_bits(instance: Callable[..., Any]) -> None:
    numbers = np.array([[1.5, -2, 3.140625, np.inf, -0.0]]).astype(ml_dtypes.bfloat16)
    result = instance("identity_bf16").run({"X": numbers[:, ::-1]}, ["Y"])["Y"]
    assert result.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(result.view(np.uint16), numbers[:, ::-1].view(np.uint16))


def test_strings_keep_bytes_that_are_no_text(instance: Callable[..., Any]) -> None:
    words = np.array([[b"", b"a\0b", b"\xff\xfe"], [b"x" * 9, "é €".encode(), b"'"]], dtype=object)
    assert instance("identity_bytes").run({"X": words}, ["Y"])["Y"].tolist() == words.tolist()


@pytest.mark.parametrize("words", [[], [b""], [b""] * 70, [b"", b"1"], [b"1", b"2"], [b"", b"long"] * 70])
def test_empty_strings_show_no_memory_of_others(words: list[bytes]) -> None:
    openvino = pytest.importorskip("openvino")
    tensor = openvino.Tensor(openvino.Type.string, [1, len(words)])
    if words:
        tensor.bytes_data = np.array([words])
    others = np.full(len(words), b"\xff", np.bytes_)
    del others  # its memory is the next that an array of this size gets
    assert texts(tensor).tolist() == [words]


def test_a_long_string_among_many_short_ones_takes_no_memory_for_each(instance: Callable[..., Any]) -> None:
    words = np.full((4, 500), b"", dtype=object)
    words[1, 7], words[3, 499] = b"z" * (1 << 20), b"end"
    tracemalloc.start()
    answer = instance("identity_bytes").run({"X": words}, ["Y"])["Y"]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.shape == (4, 500)
    assert answer.tolist() == words.tolist()
    assert most < 300 << 20  # and not 2000 MiB


@pytest.mark.parametrize(
    "name, number, fits",
    [
        ("int64", 2**31 - 2, True),
        ("int64", -(2**31), True),
        ("int64", 2**40, False),
        ("int64", -(2**31) - 1, False),
        ("uint64", 2**63, False),
        ("uint64", 7, True),
    ],
)
def test_integers_that_would_be_cut_to_32_bits_are_refused(
    instance: Callable[..., Any], name: str, number: int, fits: bool
) -> None:
    given = np.array([[1, number]], np.dtype(name))
    made = instance(f"plus_one_{name}")
    if fits:
        assert made.run({"X": given}, ["Y"])["Y"].tolist() == [[2, number + 1]]
        assert made.run({"X": given[:, :0]}, ["Y"])["Y"].shape == (1, 0)
    else:
        with pytest.raises(RequestError, match=f"input 'X' is {name.upper()}, but OpenVINO computes with 32 bits"):
            made.run({"X": given}, ["Y"])


def test_64_bit_floats_are_told_of_at_load(load: Callable[..., Any], caplog: pytest.LogCaptureFixture) -> None:
    load("plus_one_fp64")
    assert "model 'plus_one_fp64': OpenVINO computes with 32 bits where the model has FP64 ('X', 'Y')" in caplog.text
    caplog.clear()
    load("identity_fp64")
    assert not caplog.text


def test_instances_run_side_by_side_without_a_busy_request(load: Callable[..., Any]) -> None:
    model = load("conv_open", instances=2)
    barrier = threading.Barrier(2)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        runner = Runner(model.instance(ON_CPU), ModelConfig(name="conv_open"))
        image = np.full((1, 1, 30, 30), seed, np.float32)
        try:
            barrier.wait(10)
            for _ in range(50):
                assert runner.one({"IMAGE": image}, ["BLURRED"])["BLURRED"][0, 0, 9, 9] == pytest.approx(seed)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_other_failures_of_a_run_are_the_model_s() -> None:
    error = RuntimeError("Exception from src/a.cpp:1:\nException from src/b.cpp:2:\nout of everything\n\n")
    assert isinstance(run_error(error, "m"), ModelError)
    assert str(run_error(error, "m")) == "model 'm': out of everything"
    assert reason(RuntimeError()) == "RuntimeError"
    known = RequestError("no")
    assert run_error(known, "m") is known
