"""`triton_python_backend_utils` without a server."""

from __future__ import annotations

import json
import logging
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import triton_python_backend_utils as pb_utils


class DoubleModel:
    def execute(self, requests: Any) -> Any:
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("Y", request.inputs()[0].as_numpy() * 2)],
                parameters={"seen": True},
            )
            for request in requests
        ]


def test_a_model_can_be_tested_alone() -> None:
    request = pb_utils.InferenceRequest(inputs=[pb_utils.Tensor("X", np.array([1, 2]))], request_id="7", parameters={"a": 1})
    (response,) = DoubleModel().execute([request])
    found = pb_utils.get_output_tensor_by_name(response, "Y")
    assert found is not None
    assert found.as_numpy().tolist() == [2, 4]
    assert pb_utils.get_input_tensor_by_name(request, "X") is request.inputs()[0]
    assert pb_utils.get_output_tensor_by_name(response, "Z") is None
    assert (request.request_id(), json.loads(request.parameters())) == ("7", {"a": 1})
    assert (response.has_error(), response.error(), json.loads(response.parameters())) == (False, None, {"seen": True})


def test_the_responses_of_a_decoupled_model_can_be_looked_at() -> None:
    request = pb_utils.InferenceRequest(inputs=[])
    sender = request.get_response_sender()
    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([1]))]))
    sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
    assert request.sent.finished
    assert [tensor.name() for response in request.sent.responses for tensor in response.output_tensors()] == ["Y"]
    with pytest.raises(pb_utils.TritonModelException, match="finished"):
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)


@pytest.mark.parametrize(
    "name, dtype, number",
    [
        ("BOOL", np.bool_, 1),
        ("UINT8", np.uint8, 2),
        ("UINT16", np.uint16, 3),
        ("UINT32", np.uint32, 4),
        ("UINT64", np.uint64, 5),
        ("INT8", np.int8, 6),
        ("INT16", np.int16, 7),
        ("INT32", np.int32, 8),
        ("INT64", np.int64, 9),
        ("FP16", np.float16, 10),
        ("FP32", np.float32, 11),
        ("FP64", np.float64, 12),
        ("STRING", np.object_, 13),
        ("BF16", ml_dtypes.bfloat16, 14),
    ],
)
def test_types_have_three_names(name: str, dtype: Any, number: int) -> None:
    assert np.dtype(pb_utils.triton_string_to_numpy(f"TYPE_{name}")) == np.dtype(dtype)
    assert pb_utils.numpy_to_triton_type(dtype) == number
    assert np.dtype(pb_utils.triton_to_numpy_type(number)) == np.dtype(dtype)


def test_unknown_types() -> None:
    with pytest.raises(KeyError):
        pb_utils.triton_string_to_numpy("TYPE_FP33")
    assert pb_utils.triton_to_numpy_type(99) is None


def test_byte_tensors_there_and_back() -> None:
    texts = np.array([[b"", "é"], [b"a\0", 5]], dtype=object)
    wire = pb_utils.serialize_byte_tensor(texts)
    assert isinstance(wire, bytes)
    assert pb_utils.deserialize_bytes_tensor(wire).tolist() == [b"", "é".encode(), b"a\0", b"5"]
    assert pb_utils.serialize_byte_tensor(np.array([], dtype=object)) == ()
    assert pb_utils.serialize_byte_tensor(np.array([1])) is None
    assert pb_utils.deserialize_bytes_tensor(b"").size == 0
    with pytest.raises(ValueError, match="element 0 announces 9 bytes"):
        pb_utils.deserialize_bytes_tensor(b"\x09\0\0\0ab")


def test_looks_up_configurations() -> None:
    config = {"input": [{"name": "A", "dims": [1]}], "output": [{"name": "B"}], "model_transaction_policy": {"decoupled": True}}
    assert pb_utils.get_input_config_by_name(config, "A") == {"name": "A", "dims": [1]}
    assert pb_utils.get_input_config_by_name(config, "B") is None
    assert pb_utils.get_output_config_by_name(config, "B") == {"name": "B"}
    assert pb_utils.get_output_config_by_name({}, "B") is None
    assert pb_utils.using_decoupled_model_transaction_policy(config) is True
    assert pb_utils.using_decoupled_model_transaction_policy({}) is False


def test_errors_have_codes() -> None:
    error = pb_utils.TritonError("gone", pb_utils.TritonError.NOT_FOUND)
    assert (error.message(), error.code(), int(error.code())) == ("gone", pb_utils.TritonError.NOT_FOUND, 2)
    assert pb_utils.TritonError("x").code() == pb_utils.TritonError.INTERNAL


def test_the_log_has_levels(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "moorage.model"):
        pb_utils.Logger.log_info("i")
        pb_utils.Logger.log_warn("w")
        pb_utils.Logger.log_error("e")
        pb_utils.Logger.log_verbose("v")
        pb_utils.Logger.log("plain")
        pb_utils.Logger.log("loud", pb_utils.Logger.ERROR)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "i"),
        ("WARNING", "w"),
        ("ERROR", "e"),
        ("DEBUG", "v"),
        ("INFO", "plain"),
        ("ERROR", "loud"),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int64, np.float16, np.float32, ml_dtypes.bfloat16])
def test_dlpack_there_and_back(dtype: Any) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype)
    tensor = pb_utils.Tensor("A", array)
    for source in (tensor, tensor.to_dlpack()):
        again = pb_utils.Tensor.from_dlpack("B", source)
        assert again.as_numpy().dtype == array.dtype
        np.testing.assert_array_equal(again.as_numpy(), array)
    assert tensor.__dlpack_device__() == (1, 0)


def test_dlpack_of_what_came_read_only() -> None:
    array = np.frombuffer(np.arange(3.0).tobytes())
    assert pb_utils.Tensor.from_dlpack("B", pb_utils.Tensor("A", array)).as_numpy().tolist() == [0, 1, 2]


def test_unused_bf16_capsules_are_released() -> None:
    from moorage_python.runtime import dlpack

    before = len(dlpack._exported)
    tensor = pb_utils.Tensor("A", np.ones(3, ml_dtypes.bfloat16))
    tensor.to_dlpack()
    pb_utils.Tensor.from_dlpack("B", tensor)
    assert len(dlpack._exported) == before


def test_dlpack_refuses_what_it_cannot_carry() -> None:
    with pytest.raises(pb_utils.TritonModelException, match="no string tensors"):
        pb_utils.Tensor("A", np.array(["x"])).to_dlpack()
    with pytest.raises(pb_utils.TritonModelException, match="list is no DLPack capsule"):
        pb_utils.Tensor.from_dlpack("A", [1])


def test_constants_are_triton_s() -> None:
    assert pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL == 1
    assert (pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, pb_utils.TRITONSERVER_REQUEST_FLAG_SEQUENCE_END) == (1, 2)


def test_rescheduling_is_not_supported_yet() -> None:
    request = pb_utils.InferenceRequest(inputs=[])
    request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_ALL)
    with pytest.raises(pb_utils.TritonModelException, match="not supported yet"):
        request.set_release_flags(pb_utils.TRITONSERVER_REQUEST_RELEASE_RESCHEDULE)
