"""Numbers in JSON: what fits arrives as it is, what does not is refused with its place, whatever the nesting."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._server.grpc.decode import decode as grpc_decode
from moorage._server.grpc.decode import parse as grpc_parse
from moorage._server.http.codec import OutputForms, decode_request, encode_response
from moorage.config.proto import message_class
from moorage.errors import RequestError
from moorage.types import DataType, InferResponse, Tensor

INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
RANGES = {name: np.iinfo(name.lower()) for name in INTEGERS}


def decode(datatype: str, shape: list[int], data: Any) -> np.ndarray:
    body = json.dumps({"inputs": [{"name": "X", "datatype": datatype, "shape": shape, "data": data}]}).encode()
    request, _ = decode_request(memoryview(body), len(body), "m", 1)
    return request.inputs["X"].array


def nest(flat: list[Any], shape: list[int]) -> Any:
    """The elements as lists within lists, as the shape says."""
    if len(shape) < 2:
        return flat
    step = math.prod(shape[1:])
    return [nest(flat[at : at + step], shape[1:]) for at in range(0, len(flat), step)]


@st.composite
def places(draw: st.DrawFn) -> tuple[list[int], int]:
    """A shape, and the index of one of its elements."""
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    return shape, draw(st.integers(0, math.prod(shape) - 1))


def outside(datatype: str) -> st.SearchStrategy[int]:
    limits = RANGES[datatype]
    return st.integers(max_value=limits.min - 1) | st.integers(min_value=limits.max + 1) | st.sampled_from([10**400, -(10**30)])


def refused(datatype: str, place: tuple[list[int], int], value: Any, nested: bool, fill: Any = 0) -> str:
    shape, at = place
    data = [fill] * math.prod(shape)
    data[at] = value
    with pytest.raises(RequestError) as caught:
        decode(datatype, shape, nest(data, shape) if nested else data)
    assert "'X'" in str(caught.value)
    assert f"element {at} " in str(caught.value)
    return str(caught.value)


@given(st.sampled_from(INTEGERS), places(), st.data(), st.booleans())
def test_integers_out_of_range(datatype: str, place: tuple[list[int], int], data: st.DataObject, nested: bool) -> None:
    value = data.draw(outside(datatype))
    message = refused(datatype, place, value, nested)
    assert str(value)[:20] in message
    assert datatype in message


NOT_WHOLE = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: not x.is_integer())
ODD = st.one_of(NOT_WHOLE, st.booleans(), st.none(), st.text(max_size=5), st.just({"b64": "AA=="}))


@given(st.sampled_from(INTEGERS), places(), ODD, st.booleans())
def test_what_is_no_integer(datatype: str, place: tuple[list[int], int], value: Any, nested: bool) -> None:
    refused(datatype, place, value, nested)


@given(st.sampled_from(["FP32", "FP64"]), places(), st.booleans() | st.text(max_size=5) | st.just({"b64": ""}), st.booleans())
def test_what_is_no_number(datatype: str, place: tuple[list[int], int], value: Any, nested: bool) -> None:
    refused(datatype, place, value, nested, fill=0.5)


@given(places(), st.integers() | st.none() | st.booleans() | st.just({"b64": "AA=="}), st.booleans())
def test_what_is_no_text(place: tuple[list[int], int], value: Any, nested: bool) -> None:
    refused("BYTES", place, value, nested, fill="a")


@given(st.sampled_from(INTEGERS), places(), st.data())
def test_integers_in_range(datatype: str, place: tuple[list[int], int], data: st.DataObject) -> None:
    shape, at = place
    limits = RANGES[datatype]
    flat = [0] * math.prod(shape)
    flat[at] = data.draw(st.integers(int(limits.min), int(limits.max)) | st.sampled_from([int(limits.min), int(limits.max)]))
    assert decode(datatype, shape, nest(flat, shape)).ravel().tolist() == flat


@pytest.mark.parametrize("datatype", INTEGERS)
def test_a_whole_number_written_with_a_fraction_is_refused(datatype: str) -> None:
    with pytest.raises(RequestError, match=r"element 0 .*1\.0"):
        decode(datatype, [1], [1.0])


@given(st.sampled_from(["FP32", "FP64"]), st.lists(st.floats(width=32), min_size=1, max_size=5))
def test_answers_are_strict_json_with_the_fewest_digits(datatype: str, values: list[float]) -> None:
    kind = DataType.from_wire(datatype)
    assert kind is not None
    array = np.array(values, dtype=kind.numpy)
    text = bytes(encode_response(InferResponse([Tensor("Y", kind, array)]), OutputForms(False)).parts[0])
    (output,) = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["outputs"]
    back = output["data"]
    assert [one is None for one in back] == [not math.isfinite(one) for one in values]
    shortest = [float(str(one)) for one in array if np.isfinite(one)]
    assert [one for one in back if one is not None] == shortest


WIRE_FIELDS = {"INT8": "int_contents", "INT16": "int_contents", "UINT8": "uint_contents", "UINT16": "uint_contents"}


@given(st.sampled_from(sorted(WIRE_FIELDS)), places(), st.data())
def test_integers_out_of_range_over_grpc(datatype: str, place: tuple[list[int], int], data: st.DataObject) -> None:
    shape, at = place
    field = WIRE_FIELDS[datatype]
    lowest = 0 if field.startswith("u") else -(2**31)
    limits = RANGES[datatype]
    wide = st.integers(lowest, 2**31 - 1).filter(lambda one: not limits.min <= one <= limits.max)
    flat = [0] * math.prod(shape)
    flat[at] = data.draw(wide)
    request: Any = message_class("ModelInferRequest")(model_name="m")
    tensor = request.inputs.add(name="X", datatype=datatype, shape=shape)
    getattr(tensor.contents, field).extend(flat)
    with pytest.raises(RequestError) as caught:
        grpc_decode(grpc_parse(request.SerializeToString()), (), None)
    assert f"'X': element {at}, {flat[at]}, is out of range for {datatype}" in str(caught.value)


def test_null_is_not_a_number() -> None:
    assert np.isnan(decode("FP32", [2], [1, None])[1])
    with pytest.raises(RequestError, match="null"):
        decode("INT32", [1], [None])
