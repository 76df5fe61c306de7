from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moorage._server.grpc.decode import decode, parse, read_version
from moorage._server.grpc.encode import encode, encode_streamed
from moorage._server.grpc.wire import MalformedError, read_varint, split, varint
from moorage.config.proto import message_class
from moorage.errors import RequestError
from moorage.types import LATEST, DataType, InferRequest, InferResponse, Tensor
from moorage.types.tensor import bytes_array

REQUEST: Any = message_class("ModelInferRequest")
RESPONSE: Any = message_class("ModelInferResponse")
STREAMED: Any = message_class("ModelStreamInferResponse")
unhurried = settings(deadline=None, max_examples=60)
TYPES = [t for t in DataType if t is not DataType.INVALID]
FIELDS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def read(message: Any) -> InferRequest:
    return decode(parse(message.SerializeToString()), (), None)[0]


def message_of(datatype: str, shape: list[int], *, name: str = "IN") -> Any:
    message = REQUEST(model_name="plum")
    message.inputs.add(name=name, datatype=datatype, shape=shape)
    return message


@st.composite
def arrays(draw: st.DrawFn, datatype: DataType) -> np.ndarray:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    if datatype is DataType.BYTES:
        count = int(np.prod(shape))
        return bytes_array(draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count)), shape)
    if datatype is DataType.BF16:
        return draw(hnp.arrays("<u2", shape)).view(ml_dtypes.bfloat16)
    return draw(hnp.arrays(datatype.numpy, shape))


def same(left: np.ndarray, right: np.ndarray) -> bool:
    if left.dtype == object:
        return left.shape == right.shape and left.reshape(-1).tolist() == right.reshape(-1).tolist()
    return left.shape == right.shape and left.dtype == right.dtype and left.tobytes() == right.tobytes()


@unhurried
@given(st.sampled_from(TYPES).flatmap(lambda t: st.tuples(st.just(t), arrays(t))), st.booleans())
def test_raw_tensors_come_back(case: tuple[DataType, np.ndarray], streamed: bool) -> None:
    datatype, array = case
    response = InferResponse([Tensor("T", datatype, array)], model_name="plum", model_version=3)
    if streamed:
        answer = STREAMED.FromString(encode_streamed(response, "id-ä", final=True)).infer_response
        assert answer.parameters["triton_final_response"].bool_param
    else:
        answer = RESPONSE.FromString(encode(response, "id-ä"))
        assert not answer.parameters
    assert (answer.model_name, answer.model_version, answer.id) == ("plum", "3", "id-ä")
    (output,) = answer.outputs

    message = message_of(output.datatype, list(output.shape))
    message.raw_input_contents.extend(answer.raw_output_contents)

    assert same(read(message).inputs["IN"].array, array)


@unhurried
@given(st.sampled_from([t for t in TYPES if t.wire in FIELDS]).flatmap(lambda t: st.tuples(st.just(t), arrays(t))))
def test_typed_tensors_arrive(case: tuple[DataType, np.ndarray]) -> None:
    datatype, array = case
    message = message_of(datatype.wire, list(array.shape))
    getattr(message.inputs[0].contents, FIELDS[datatype.wire]).extend(array.reshape(-1).tolist())

    assert same(read(message).inputs["IN"].array, array)


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_raw_tensors_are_views(size: int) -> None:
    array = np.arange(size, dtype="<i4")
    message = message_of("INT32", [size])
    message.raw_input_contents.append(array.tobytes())

    tensor = read(message).inputs["IN"].array

    assert not tensor.flags.owndata
    assert not tensor.flags.writeable
    assert np.array_equal(tensor, array)


def test_outputs_that_are_not_contiguous_are_sent_in_order() -> None:
    array = np.arange(60_000, dtype="<i4").reshape(200, 300).T
    (raw,) = RESPONSE.FromString(encode(InferResponse([Tensor("T", DataType.INT32, array)]), "")).raw_output_contents

    assert np.array_equal(np.frombuffer(raw, "<i4").reshape(300, 200), array)


def _mutants() -> list[tuple[str, Any]]:
    def build(datatype: str, shape: list[int], field: str = "", values: Any = (), raw: list[bytes] | None = None) -> Any:
        message = message_of(datatype, shape)
        if field:
            getattr(message.inputs[0].contents, field).extend(values)
        message.raw_input_contents.extend(raw or [])
        return message

    twice = build("INT32", [1], raw=[b"1234", b"1234"])
    twice.inputs.add(name="IN", datatype="INT32", shape=[1])
    missing = build("INT32", [1], raw=[b"1234"])
    missing.inputs.add(name="IN2", datatype="INT32", shape=[1])
    surplus = build("INT32", [1], raw=[b"1234", b"1234"])
    parameters = [build("INT32", [1], raw=[b"1234"]) for _ in range(12)]
    for message, (name, kind, value) in zip(
        parameters,
        [
            ("triton_x", "bool_param", True),
            ("triton_enable_empty_final_response", "int64_param", 1),
            ("sequence_id", "bool_param", True),
            ("sequence_start", "string_param", "yes"),
            ("sequence_end", "int64_param", 1),
            ("priority", "int64_param", -1),
            ("priority", "double_param", 1.0),
            ("timeout", "string_param", "5"),
            ("timeout", "int64_param", -5),
        ],
        strict=False,
    ):
        setattr(message.parameters[name], kind, value)
    parameters[9].parameters["empty"].SetInParent()
    parameters[10].outputs.add(name="OUT").parameters["classification"].int64_param = -1
    parameters[11].outputs.add(name="OUT").parameters["classification"].string_param = "3"
    shared_in, shared_out = build("INT32", [1]), build("INT32", [1], raw=[b"1234"])
    shared_in.inputs[0].parameters["shared_memory_region"].string_param = "region"
    shared_out.outputs.add(name="OUT").parameters["shared_memory_region"].string_param = "region"
    return [
        ("IN", build("INT32", [1, 3], "int_contents", [1, 2])),
        ("IN", build("INT32", [1, 3])),
        ("takes 12", build("INT32", [3], raw=[b"12345678"])),
        ("takes 4", build("INT32", [1], raw=[b"12345"])),
        ("IN", build("INT32", [1], "int_contents", [1], raw=[b"1234"])),
        ("fp32_contents", build("INT32", [1], "fp32_contents", [1.0])),
        ("INT8", build("INT8", [1], "int_contents", [128])),
        ("UINT16", build("UINT16", [1], "uint_contents", [2**16])),
        ("FP16", build("FP16", [1], "fp32_contents", [1.0])),
        ("BF16", build("BF16", [1])),
        ("INT33", build("INT33", [1], "int_contents", [1])),
        ("IN", build("", [1], raw=[b"1"])),
        ("IN", build("INT32", [-1], raw=[b"1234"])),
        ("IN", build("INT32", [-1, -1], raw=[b"1234"])),
        ("IN", build("INT32", [0, 2**62, 2**62], raw=[b""])),
        ("IN", build("UINT8", [1] * 70, raw=[b"1"])),
        ("IN", build("BYTES", [2], raw=[b"\3\0\0\0one"])),
        ("IN", build("BYTES", [1], raw=[b"\3\0\0\0on"])),
        ("IN", build("BYTES", [1], raw=[b"\3\0"])),
        ("IN", build("BYTES", [1], "bytes_contents", [b"one", b"two"])),
        ("IN", twice),
        ("IN2", missing),
        ("1", surplus),
        ("region", shared_in),
        ("region", shared_out),
        *[("parameter", message) for message in parameters[:10]],
        *[("classification", message) for message in parameters[10:]],
    ]


@pytest.mark.parametrize("word,message", _mutants())
def test_wrong_requests_are_refused_by_name(word: str, message: Any) -> None:
    with pytest.raises(RequestError) as caught:
        read(message)

    assert "plum" in str(caught.value)
    assert word in str(caught.value)


@pytest.mark.parametrize("kind,value", [("int64_param", -5), ("uint64_param", 2**64 - 1), ("string_param", "s")])
def test_correlation_ids(kind: str, value: Any) -> None:
    message = message_of("INT32", [0])
    setattr(message.parameters["sequence_id"], kind, value)

    assert read(message).correlation_id == value


NUMBERS = st.integers(-2, 5)
CONTENTS = st.fixed_dictionaries(
    {},
    optional={
        "bool_contents": st.lists(st.booleans(), max_size=3),
        "int_contents": st.lists(st.integers(-(2**31), 2**31 - 1), max_size=3),
        "int64_contents": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3),
        "uint_contents": st.lists(st.integers(0, 2**32 - 1), max_size=3),
        "fp32_contents": st.lists(st.floats(width=32), max_size=3),
        "bytes_contents": st.lists(st.binary(max_size=3), max_size=3),
    },
)
PARAMETERS = st.dictionaries(
    st.sampled_from(["sequence_id", "priority", "timeout", "classification", "shared_memory_region", "triton_x", "free"]),
    st.one_of(
        st.fixed_dictionaries({"int64_param": NUMBERS}),
        st.fixed_dictionaries({"string_param": st.text(max_size=2)}),
        st.just({}),
    ),
    max_size=2,
)
INPUTS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["A", "B", ""]),
        "datatype": st.sampled_from([*FIELDS, "FP16", "BF16", "INVALID", "TYPE_INT32", ""]),
        "shape": st.lists(st.one_of(NUMBERS, st.just(2**62)), max_size=3),
    },
    optional={"contents": CONTENTS, "parameters": PARAMETERS},
)
REQUESTS = st.builds(
    REQUEST,
    model_name=st.just("plum"),
    parameters=PARAMETERS,
    inputs=st.lists(INPUTS, max_size=3),
    outputs=st.lists(st.fixed_dictionaries({"name": st.text(max_size=2), "parameters": PARAMETERS}), max_size=2),
    raw_input_contents=st.lists(st.binary(max_size=12), max_size=3),
)


@unhurried
@given(REQUESTS)
def test_any_request_is_read_or_refused(message: Any) -> None:
    try:
        request = read(message)
    except RequestError:
        return
    assert set(request.inputs) == {tensor.name for tensor in message.inputs}
    for tensor in message.inputs:
        assert request.inputs[tensor.name].shape == tuple(tensor.shape)


@unhurried
@given(st.binary(max_size=60), st.integers(0, 60))
def test_any_bytes_are_read_or_refused(data: bytes, at: int) -> None:
    message = message_of("INT32", [1])
    message.raw_input_contents.append(b"1234")
    good = message.SerializeToString()
    try:
        decode(parse(good[:at] + data + good[at:]), (), None)
    except RequestError:
        return


@unhurried
@given(REQUESTS)
def test_splitting_agrees_with_the_parser(message: Any) -> None:
    head, raws = split(message.SerializeToString(), 7)

    assert [bytes(raw) for raw in raws] == list(message.raw_input_contents)
    message.ClearField("raw_input_contents")
    assert REQUEST.FromString(head) == message


@unhurried
@given(st.binary(max_size=40))
def test_splitting_refuses_what_is_no_message(data: bytes) -> None:
    try:
        head, raws = split(data, 7)
    except MalformedError:
        return
    assert len(head) + sum(map(len, raws)) <= len(data)


@pytest.mark.parametrize("data", [b"\x3a\x05abc", b"\x08", b"\x09abc", b"\x0d12", b"\x0b", b"\xff" * 11])
def test_splitting_sees_what_is_cut_off(data: bytes) -> None:
    with pytest.raises(MalformedError):
        split(data, 7)


@unhurried
@given(st.integers(0, 2**64 - 1))
def test_numbers_come_back(number: int) -> None:
    assert read_varint(b"x" + varint(number), 1) == (number, 1 + len(varint(number)))


def test_versions() -> None:
    assert read_version("", "plum") == LATEST
    assert read_version("03", "plum") == 3
    with pytest.raises(RequestError, match="plum"):
        read_version("-1", "plum")
