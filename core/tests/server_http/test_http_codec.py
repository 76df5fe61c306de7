"""Requests and responses as bytes."""

import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from moorage._server.http.codec import OutputForms, decode_raw, decode_request, encode_response
from moorage.config.schema import ModelConfig, ModelInput
from moorage.errors import RequestError, Unsupported
from moorage.types import DataType, InferRequest, InferResponse, RequestedOutput, Tensor
from moorage.types.tensor import bytes_array, encode_bytes

NUMERIC = [t for t in DataType if t not in (DataType.INVALID, DataType.BYTES)]
JSON_TYPES = [t for t in NUMERIC if t not in (DataType.FP16, DataType.BF16)]


def decode(value: Any, tail: bytes = b"", **options: bool) -> tuple[InferRequest, OutputForms]:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return decode_request(memoryview(text + tail), len(text), "m", 3, **options)


def one(datatype: str, shape: Any, data: Any) -> np.ndarray:
    request, _ = decode({"inputs": [{"name": "X", "datatype": datatype, "shape": shape, "data": data}]})
    return request.inputs["X"].array


def binary(datatype: str, shape: list[int], data: bytes, size: Any = None) -> np.ndarray:
    parameters = {"binary_data_size": len(data) if size is None else size}
    part = {"name": "X", "datatype": datatype, "shape": shape, "parameters": parameters}
    return decode({"inputs": [part]}, data)[0].inputs["X"].array


def refusal(value: Any, tail: bytes = b"", **options: bool) -> str:
    with pytest.raises(RequestError) as caught:
        decode(value, tail, **options)
    return str(caught.value)


def arrays(datatype: DataType) -> st.SearchStrategy[np.ndarray]:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
    if datatype is DataType.BF16:
        return hnp.arrays(np.float32, shapes).map(lambda array: array.astype(ml_dtypes.bfloat16))
    return hnp.arrays(datatype.numpy, shapes)


@given(st.sampled_from(NUMERIC).flatmap(lambda t: st.tuples(st.just(t), arrays(t))))
def test_binary_round_trip(case: tuple[DataType, np.ndarray]) -> None:
    datatype, array = case
    response = InferResponse([Tensor("X", datatype, array)], model_name="m", model_version=1)
    encoded = encode_response(response, OutputForms(True))
    head = json.loads(bytes(encoded.parts[0]))
    (output,) = head["outputs"]
    assert encoded.header_length == len(encoded.parts[0])
    assert output["parameters"] == {"binary_data_size": array.nbytes}
    back = binary(datatype.wire, output["shape"], bytes(encoded.parts[1]))
    assert (back.dtype, back.shape, back.tobytes()) == (datatype.numpy, array.shape, array.tobytes())


@given(st.sampled_from(JSON_TYPES).flatmap(lambda t: st.tuples(st.just(t), arrays(t))))
def test_json_round_trip(case: tuple[DataType, np.ndarray]) -> None:
    datatype, array = case
    encoded = encode_response(
        InferResponse([Tensor("X", datatype, array)], model_name="m", model_version=1), OutputForms(False)
    )
    assert encoded.header_length is None
    text = bytes(encoded.parts[0])
    (output,) = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["outputs"]
    back = one(datatype.wire, output["shape"], output["data"])
    wanted = np.where(np.isfinite(array), array, np.nan).astype(array.dtype) if array.dtype.kind == "f" else array
    np.testing.assert_array_equal(back, wanted)
    assert back.dtype == datatype.numpy


@given(st.lists(st.binary(max_size=5), max_size=5))
def test_bytes_binary_round_trip(elements: list[bytes]) -> None:
    array = bytes_array(elements, [len(elements)])
    encoded = encode_response(InferResponse([Tensor("X", DataType.BYTES, array)]), OutputForms(True))
    assert binary("BYTES", [len(elements)], bytes(encoded.parts[1])).tolist() == elements


@given(st.lists(st.text(st.characters(codec="utf-8")), max_size=5))
def test_bytes_json_round_trip(elements: list[str]) -> None:
    array = one("BYTES", [len(elements)], elements)
    assert array.tolist() == [text.encode() for text in elements]
    encoded = encode_response(InferResponse([Tensor("X", DataType.BYTES, array)]), OutputForms(False))
    assert json.loads(bytes(encoded.parts[0]))["outputs"][0]["data"] == elements


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["X", "Y"]) | JSON_VALUES,
        "datatype": st.sampled_from([t.wire for t in NUMERIC] + ["BYTES"]) | JSON_VALUES,
        "shape": st.lists(st.integers(-1, 3) | st.integers(), max_size=3) | JSON_VALUES,
        "data": st.lists(st.integers() | st.floats(), max_size=4) | JSON_VALUES,
        "parameters": st.fixed_dictionaries({}, optional={"binary_data_size": st.integers(0, 9) | JSON_VALUES}) | JSON_VALUES,
    },
)
BODIES = st.fixed_dictionaries(
    {"inputs": st.lists(PARTS, max_size=2) | JSON_VALUES},
    optional={"id": JSON_VALUES, "outputs": st.lists(PARTS, max_size=2) | JSON_VALUES, "parameters": JSON_VALUES},
)


@given(BODIES, st.binary(max_size=9))
def test_whatever_comes_is_decoded_or_refused(value: Any, tail: bytes) -> None:
    try:
        request, _ = decode(value, tail)
    except RequestError:
        pass  # what is wrong is told by the tests below
    else:
        assert all(isinstance(tensor.array, np.ndarray) for tensor in request.inputs.values())


@given(st.binary(max_size=40), st.integers(0, 40))
def test_any_bytes_are_refused(data: bytes, length: int) -> None:
    with pytest.raises(RequestError):
        decode_request(memoryview(data), min(length, len(data)), "m", 1)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"hello",
        b'{"inputs": [',
        b"[]",
        b"{}",
        b'{"inputs": {}}',
        b'{"inputs": 5}',
        b'{"inputs": [5]}',
        b'{"inputs": [], "x": NaN}',
        b'{"inputs": [], "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"inputs": []} x',
        b'{"id": 5, "inputs": []}',
        b'{"id": "\xff"}',
    ],
)
def test_malformed_bodies(text: bytes) -> None:
    assert refusal(text)


@pytest.mark.parametrize("field", ["name", "datatype", "shape"])
def test_a_missing_field_is_named(field: str) -> None:
    part = {"name": "X", "datatype": "INT8", "shape": [1], "data": [1]}
    del part[field]
    assert field in refusal({"inputs": [part]})


def test_ids_and_unknown_fields() -> None:
    request, _ = decode({"id": "abc 1", "inputs": [], "extra": {"a": [1]}})
    assert (request.id, request.model_name, request.model_version) == ("abc 1", "m", 3)


@pytest.mark.parametrize("data", [[1, 2, 3, 4], [[1, 2], [3, 4]], [[[1], [2]], [[3, 4]]], [[[1], 2], 3, [[[4]]]]])
def test_any_nesting(data: list[Any]) -> None:
    assert one("INT32", [2, 2], data).tolist() == [[1, 2], [3, 4]]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_nesting_has_an_end() -> None:
    assert one("INT32", [1], nested(100)).tolist() == [1]
    with pytest.raises(RequestError, match="nested"):
        one("INT32", [1], nested(101))


@pytest.mark.parametrize(
    "datatype,data,words",
    [
        ("UINT8", [0, 256], ["'X'", "element 1", "256", "UINT8"]),
        ("UINT8", [-1, 0], ["element 0", "-1"]),
        ("INT8", [0, 200], ["element 1", "200"]),
        ("INT32", [3000000000, 1], ["element 0", "3000000000"]),
        ("INT64", [2**63, 1], ["element 0", str(2**63)]),
        ("UINT64", [1, 2**64], ["element 1", str(2**64)]),
        ("FP32", [1, 1e39], ["element 1", "1e+39", "FP32"]),
        ("FP64", [1, 10**400], ["element 1", "FP64"]),
        ("UINT8", [1.5, 1], ["element 0", "1.5", "whole numbers"]),
        ("UINT8", [1, 1.0], ["element 1"]),
        ("UINT8", ["a", 1], ["element 0", "'a'"]),
        ("INT32", [1, True], ["element 1", "true"]),
        ("INT32", [1, None], ["element 1", "null"]),
        ("FP32", [1, "2"], ["element 1", "numbers"]),
        ("BOOL", [True, 0], ["element 1", "true or false"]),
        ("BYTES", ["a", 1], ["element 1", "strings"]),
        ("BYTES", ["a", {"b64": "AA=="}], ["element 1", "an object"]),
        ("INT32", [1], ["1 elements", "[2]"]),
        ("INT32", [1, 2, 3], ["3 elements"]),
        ("INT32", 5, ["not an array"]),
        ("INT32", {"0": 1}, ["an object"]),
        ("FP16", [1, 2], ["binary"]),
        ("BF16", [1, 2], ["binary"]),
        ("STRING", ["a", "b"], ["STRING", "BYTES"]),
    ],
)
def test_wrong_data(datatype: str, data: Any, words: list[str]) -> None:
    message = refusal({"inputs": [{"name": "X", "datatype": datatype, "shape": [2], "data": data}]})
    for word in ["'X'", *words]:
        assert word in message


@pytest.mark.parametrize(
    "shape", [[-1], [2**63], [2**62, 2**62], [2**40, 2**40, 0], [2**70], [1] * 33, "-1", [1.5], None, [[1]]]
)
def test_wrong_shapes(shape: Any) -> None:
    assert "shape" in refusal({"inputs": [{"name": "X", "datatype": "INT8", "shape": shape, "data": []}]})


def test_extremes_fit() -> None:
    assert one("INT64", [2], [-(2**63), 2**63 - 1]).tolist() == [-(2**63), 2**63 - 1]
    assert one("UINT64", [1], [2**64 - 1]).tolist() == [2**64 - 1]
    assert np.isnan(one("FP32", [1], [None])[0])
    assert one("FP32", [0], []).shape == (0,)
    assert one("FP32", [], [5]).shape == ()
    assert one("BYTES", [1, 2], ["zwölf", ""]).tolist() == [["zwölf".encode(), b""]]


def test_halves_in_json_can_be_switched_on() -> None:
    part = {"name": "X", "datatype": "FP16", "shape": [2], "data": [1.5, 2]}
    request, _ = decode({"inputs": [part]}, json_halves=True)
    assert request.inputs["X"].array.dtype == np.float16
    assert "65536" in refusal({"inputs": [part | {"data": [1, 65536]}]}, json_halves=True)
    response = InferResponse([Tensor("Y", DataType.BF16, np.array([0.5], dtype=ml_dtypes.bfloat16))])
    assert json.loads(bytes(encode_response(response, OutputForms(False), json_halves=True).parts[0]))["outputs"][0][
        "data"
    ] == [0.5]
    with pytest.raises(RequestError, match=r"'Y'.*binary"):
        encode_response(response, OutputForms(False))


def test_binary_and_json_inputs_together() -> None:
    request, _ = decode(
        {
            "inputs": [
                {"name": "A", "datatype": "INT32", "shape": [2], "parameters": {"binary_data_size": 8}},
                {"name": "B", "datatype": "INT32", "shape": [1], "data": [9]},
                {"name": "C", "datatype": "UINT8", "shape": [1], "parameters": {"binary_data_size": 1}},
            ]
        },
        struct.pack("<iiB", 1, -2, 7),
    )
    assert [tensor.array.tolist() for tensor in request.inputs.values()] == [[1, -2], [9], [7]]


def test_a_binary_tensor_is_a_read_only_view() -> None:
    part = {"name": "X", "datatype": "FP32", "shape": [4], "parameters": {"binary_data_size": 16}}
    text = json.dumps({"inputs": [part]}).encode()
    text += b" " * (-len(text) % 16)
    body = bytearray(text + struct.pack("<4f", 1, 2, 3, 4))
    request, _ = decode_request(memoryview(body), len(text), "m", 1)
    array = request.inputs["X"].array
    assert not array.flags.writeable
    assert np.shares_memory(array, np.frombuffer(body, dtype=np.uint8))
    assert array.flags.aligned


@pytest.mark.parametrize(
    "size,tail,words",
    [
        (12, 8, ["12", "8"]),
        (8, 12, ["4 bytes at the end"]),
        (4, 4, ["4 bytes", "takes 8"]),
        (-1, 0, ["binary_data_size"]),
        ("8", 8, ["binary_data_size"]),
        (True, 1, ["binary_data_size"]),
        (8.0, 8, ["binary_data_size"]),
        (2**70, 8, ["binary_data_size"]),
    ],
)
def test_wrong_binary_sizes(size: Any, tail: int, words: list[str]) -> None:
    part = {"name": "X", "datatype": "FP32", "shape": [2], "parameters": {"binary_data_size": size}}
    message = refusal({"inputs": [part]}, bytes(tail))
    assert all(word in message for word in words)


@pytest.mark.parametrize("data", [b"\x09\0\0\0hi", b"\x02\0\0", encode_bytes([b"a", b"b"])])
def test_broken_text_elements(data: bytes) -> None:
    part = {"name": "X", "datatype": "BYTES", "shape": [1], "parameters": {"binary_data_size": len(data)}}
    assert "'X'" in refusal({"inputs": [part]}, data)


def test_doubled_and_absent_data() -> None:
    part = {"name": "X", "datatype": "INT8", "shape": [1], "data": [1]}
    assert "twice" in refusal({"inputs": [part, part]})
    assert "both" in refusal({"inputs": [part | {"parameters": {"binary_data_size": 1}}]}, b"\1")
    assert "neither" in refusal({"inputs": [{"name": "X", "datatype": "INT8", "shape": [1]}]})


def test_parameters_find_their_places() -> None:
    request, forms = decode(
        {
            "inputs": [],
            "parameters": {
                "sequence_id": 7,
                "sequence_start": True,
                "sequence_end": False,
                "priority": 2,
                "timeout": 500,
                "binary_data_size": 4,
                "binary_data_output": True,
                "colour": "red",
                "size": 5,
                "keen": True,
                "ratio": 0.5,
            },
        }
    )
    assert (request.correlation_id, request.sequence_start, request.sequence_end) == (7, True, False)
    assert (request.priority, request.timeout_us) == (2, 500)
    assert request.parameters == {"colour": "red", "size": 5, "keen": True, "ratio": 0.5}
    assert forms.binary("anything")
    assert decode({"inputs": [], "parameters": {"sequence_id": "a"}})[0].correlation_id == "a"


@pytest.mark.parametrize(
    "parameters",
    [{"deep": {"a": 1}}, {"list": [1]}, {"nothing": None}, {"triton_private": 1}, {"sequence_id": 1.5}, {"sequence_start": 1},
     {"priority": -1}, {"timeout": "1"}, {"binary_data_output": 1}, {"huge": 2**63}],
)  # fmt: skip
def test_wrong_parameters_are_named(parameters: dict[str, Any]) -> None:
    assert next(iter(parameters)) in refusal({"inputs": [], "parameters": parameters})


def test_requested_outputs() -> None:
    request, forms = decode(
        {
            "inputs": [],
            "outputs": [{"name": "A", "parameters": {"binary_data": True, "classification": 3}}, {"name": "B"}],
            "parameters": {"binary_data_output": True},
        }
    )
    assert [(out.name, out.classification) for out in request.outputs] == [("A", 3), ("B", 0)]
    assert all(isinstance(out, RequestedOutput) for out in request.outputs)
    assert forms.binary("A")
    assert not forms.binary("B")
    assert decode({"inputs": [], "outputs": []})[0].outputs == ()


@pytest.mark.parametrize("output", [{}, {"name": 5}, {"name": "A", "parameters": {"classification": -1}},
                                    {"name": "A", "parameters": {"binary_data": 1}}])  # fmt: skip
def test_wrong_outputs(output: dict[str, Any]) -> None:
    assert refusal({"inputs": [], "outputs": [output]})


def test_shared_memory_is_not_there() -> None:
    part = {"name": "X", "datatype": "INT8", "shape": [1], "parameters": {"shared_memory_region": "r"}}
    with pytest.raises(Unsupported, match="shared memory"):
        decode({"inputs": [part]})


def test_response_json() -> None:
    outputs = [
        Tensor("F", DataType.FP32, np.array([[0.1], [np.nan], [np.inf]], dtype=np.float32)),
        Tensor("T", DataType.BYTES, bytes_array([b"a", "é".encode()], [2])),
        Tensor("S", DataType.INT32, np.arange(6, dtype=np.int32).reshape(2, 3).T),
    ]
    response = InferResponse(outputs, parameters={"note": "x"}, model_name="m", model_version=4)
    encoded = encode_response(response, OutputForms(False), "r1")
    assert b'"data":[0.1,null,null]' in encoded.parts[0]
    head = json.loads(bytes(encoded.parts[0]))
    assert (head["id"], head["model_name"], head["model_version"], head["parameters"]) == ("r1", "m", "4", {"note": "x"})
    assert [out["data"] for out in head["outputs"][1:]] == [["a", "é"], [0, 3, 1, 4, 2, 5]]
    assert head["outputs"][2]["shape"] == [3, 2]
    assert "id" not in json.loads(bytes(encode_response(response, OutputForms(False)).parts[0]))


def test_text_that_is_no_utf8_needs_binary() -> None:
    response = InferResponse([Tensor("T", DataType.BYTES, bytes_array([b"\xff"], [1]))])
    with pytest.raises(RequestError, match=r"'T'.*binary"):
        encode_response(response, OutputForms(False))


def test_a_binary_output_is_not_copied() -> None:
    array = np.arange(4, dtype=np.float32)
    encoded = encode_response(InferResponse([Tensor("Y", DataType.FP32, array)]), OutputForms(True))
    array[0] = 7
    assert np.frombuffer(encoded.parts[1], dtype=np.float32)[0] == 7


def raw_config(datatype: DataType, dims: tuple[int, ...], batch: int = 0, inputs: int = 1) -> ModelConfig:
    given = tuple(ModelInput(name=f"X{i}", data_type=datatype, dims=dims) for i in range(inputs))
    return ModelConfig(name="m", max_batch_size=batch, input=given)


@pytest.mark.parametrize(
    "datatype,dims,batch,body,shape",
    [
        (DataType.FP32, (-1,), 0, bytes(16), (4,)),
        (DataType.FP32, (2, -1), 4, bytes(16), (1, 2, 2)),
        (DataType.INT16, (4,), 0, bytes(8), (4,)),
        (DataType.BYTES, (1,), 0, b"hi there", (1,)),
        (DataType.BYTES, (1,), 2, b"", (1, 1)),
    ],
)
def test_raw_requests(datatype: DataType, dims: tuple[int, ...], batch: int, body: bytes, shape: tuple[int, ...]) -> None:
    request, forms = decode_raw(memoryview(body), "m", 1, raw_config(datatype, dims, batch))
    assert request.inputs["X0"].array.shape == shape
    assert forms.binary("whatever")
    if datatype is DataType.BYTES:
        assert request.inputs["X0"].array.flat[0] == body


@pytest.mark.parametrize(
    "config,body",
    [
        (raw_config(DataType.FP32, (-1,), inputs=2), bytes(8)),
        (raw_config(DataType.FP32, (-1, -1)), bytes(8)),
        (raw_config(DataType.FP32, (-1,)), bytes(7)),
        (raw_config(DataType.FP32, (3,)), bytes(8)),
        (raw_config(DataType.FP32, (0, -1)), bytes(8)),
        (raw_config(DataType.BYTES, (2,)), b"hi"),
    ],
)
def test_models_and_bodies_that_raw_requests_cannot_have(config: ModelConfig, body: bytes) -> None:
    with pytest.raises(RequestError):
        decode_raw(memoryview(body), "m", 1, config)
