"""Configurations against what the model file declares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._repository.fit import check
from moorage.backend import Signature, TensorSpec
from moorage.config import parse_text
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import Fault
from moorage.types import DataType

Shape = tuple[int, ...] | None


def faults(size: int, dims: str, x: Shape, y_dims: str = "[-1]", y: Shape = None, more: str = "") -> list[Fault]:
    """Of a model with input X and output Y; a shape of None is unknown to the model."""
    text = f"""max_batch_size: {size}
    input {{ name: "X" data_type: TYPE_FP32 dims: {dims} {more} }}
    output {{ name: "Y" data_type: TYPE_FP32 dims: {y_dims} }}"""
    model = Signature((TensorSpec("X", DataType.FP32, x),), (TensorSpec("Y", DataType.FP32, y),))
    return check(parse_text(text, file="config.pbtxt"), model)


@pytest.mark.parametrize("most, fits", [(None, True), (0, True), (4, True), (3, False)])
def test_a_batch_size_that_the_model_does_not_take(most: int | None, fits: bool) -> None:
    parsed = parse_text("max_batch_size: 4", file="config.pbtxt")
    found = check(parsed, Signature((), (), max_batch_size=most))
    assert [str(fault) for fault in found] == (
        [] if fits else ["config.pbtxt:1:1: max_batch_size: it is 4, but the model takes batches of at most 3 (write 3)"]
    )


@pytest.mark.parametrize(
    "size, dims, shape",
    [
        (16, "[128]", (-1, 128)),
        (0, "[-1, 128]", (-1, 128)),
        (0, "[1, 128]", (-1, 128)),
        (0, "[7, 128]", (-1, 128)),
        (4, "[3]", (-1, -1)),
        (0, "[1, 3, 64, 64]", (1, 3, 64, 64)),
        (4, "[9, 9]", None),
    ],
)
def test_inputs_that_fit(size: int, dims: str, shape: Shape) -> None:
    assert faults(size, dims, shape) == []


@pytest.mark.parametrize(
    "size, dims, shape, words",
    [
        (4, "[3, 64, 64]", (1, 3, 64, 64), ["fixed at 1", "max_batch_size: 0 and dims: [1, 3, 64, 64]"]),
        (16, "[-1, 128]", (-1, 128), ["[-1, 128] has 2 dimensions", "dims leave out", "write dims: [128]"]),
        (0, "[128]", (-1, 128), ["write dims: [-1, 128], or a max_batch_size of at least 1"]),
        (0, "[64]", (-1, 3, 64), ["[64] has 1 dimensions", "write dims: [-1, 3, 64]"]),
        (0, "[-1, 128]", (4, 128), ["[-1, 128] does not fit 'X'", "[4, 128]"]),
        (8, "[64]", (-1, 128), ["[64] does not fit 'X', which the model declares as [128]"]),
        (8, "[64, 5]", (-1, -1, 6), ["-1 in the model's place allows any size"]),
        (8, "[1]", (), ["without dimensions", "max_batch_size: 0"]),
        (0, "[1]", (), ["write dims: [1] and reshape { shape: [] }"]),
    ],
)
def test_inputs_that_do_not_fit(size: int, dims: str, shape: Shape, words: list[str]) -> None:
    (fault,) = faults(size, dims, shape)
    assert (fault.file, fault.line, fault.field) == ("config.pbtxt", 2, "input[0].dims")
    for word in words:
        assert word in str(fault)


def test_an_output_may_be_wider_or_narrower() -> None:
    assert faults(8, "[1]", (-1, 1), "[-1, 25]", (-1, 256, 25)) == []
    assert faults(0, "[1]", (1,), "[1, 3, 32, 32]", (-1, -1, -1, -1)) == []


def test_an_output_must_have_the_sizes_that_the_model_fixes() -> None:
    (fault,) = faults(8, "[1]", (-1, 1), "[7, 25]", (-1, 256, 25))
    assert fault.field == "output[0].dims"


def test_a_reshape_is_what_the_model_sees() -> None:
    assert faults(8, "[1, 4]", (-1, 4), more="reshape { shape: [4] }") == []
    assert faults(8, "[1]", (-1,), more="reshape { shape: [] }") == []
    (fault,) = faults(8, "[4]", (-1, 4), more="reshape { shape: [2, 2] }")
    assert fault.field == "input[0].reshape.shape"


@pytest.mark.parametrize("more", ["allow_ragged_batch: true", "is_shape_tensor: true"])
def test_tensors_whose_shape_is_free(more: str) -> None:
    assert faults(8, "[5, 5]", (-1,), more=more) == []


def test_names_types_and_what_is_missing() -> None:
    text = """
input { name: "IMAGE" data_type: TYPE_FP32 dims: 1 }
input { name: "Y" data_type: TYPE_FP32 dims: 1 }
input { name: "SIZE" data_type: TYPE_INT32 dims: 1 }
output { name: "zzz" data_type: TYPE_FP32 dims: 1 }
sequence_batching { control_input { name: "STRT" control { kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] } } }
"""
    inputs = tuple(TensorSpec(name, DataType.INT64, (1,)) for name in ("IMAGES", "SIZE", "START"))
    model = Signature(inputs, (TensorSpec("Y", DataType.FP32, (1,)),))
    found = {fault.field: str(fault) for fault in check(parse_text(text, file="c"), model)}
    assert "no input 'IMAGE'; its inputs are 'IMAGES', 'SIZE', 'START' (did you mean 'IMAGES'?)" in found["input[0].name"]
    assert "c:3:" in found["input[1].name"]
    assert "it is TYPE_INT32, but the model declares 'SIZE' as TYPE_INT64 (write TYPE_INT64)" in found["input[2].data_type"]
    assert "no output 'zzz'; its outputs are 'Y'" in found["output[0].name"]
    assert "did you mean" not in found["output[0].name"]
    assert "(did you mean 'START'?)" in found["sequence_batching.control_input[0].name"]
    assert "needs input 'START', which is not listed" in found["input"]


@pytest.mark.parametrize("datatype, fits", [(None, True), (DataType.FP32, True), (DataType.BYTES, False)])
def test_types_that_the_file_does_not_tell(datatype: DataType | None, fits: bool) -> None:
    model = Signature((TensorSpec("X", datatype, None),), ())
    assert (check(parse_text('input { name: "X" data_type: TYPE_FP32 dims: 1 }'), model) == []) is fits


DIM = st.sampled_from([-1, 1, 2, 3])
DIMS = st.lists(DIM, min_size=1, max_size=3).map(tuple)


def accepts(dims: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a shape without open sizes is one that `dims` allow."""
    return len(dims) == len(shape) and all(dim in (-1, size) for dim, size in zip(dims, shape, strict=True))


@given(DIMS, DIMS, st.integers(0, 4), st.data())
def test_whatever_the_configuration_lets_in_the_model_takes(
    dims: tuple[int, ...], declared: tuple[int, ...], size: int, data: st.DataObject
) -> None:
    config = ModelConfig(max_batch_size=size, input=(ModelInput(name="X", data_type=DataType.FP32, dims=dims),))
    found = check(ParsedConfig(config), Signature((TensorSpec("X", DataType.FP32, declared),), ()))
    full = (-1, *dims) if size else dims
    if not found:
        request = tuple(data.draw(st.integers(1, 4)) if dim == -1 else dim for dim in full)
        assert accepts(declared, request)
    elif len(full) == len(declared) and not size:
        assert any(wanted not in (-1, dim) for dim, wanted in zip(full, declared, strict=True))


@given(DIMS, DIMS, st.integers(0, 4))
def test_an_output_fits_when_some_shape_satisfies_both(dims: tuple[int, ...], declared: tuple[int, ...], size: int) -> None:
    config = ModelConfig(max_batch_size=size, output=(ModelOutput(name="Y", data_type=DataType.FP32, dims=dims),))
    found = check(ParsedConfig(config), Signature((), (TensorSpec("Y", DataType.FP32, declared),)))
    full = (-1, *dims) if size else dims
    common = len(full) == len(declared) and all(-1 in (a, b) or a == b for a, b in zip(full, declared, strict=True))
    assert (not found) is (common and (not size or declared[0] == -1))
