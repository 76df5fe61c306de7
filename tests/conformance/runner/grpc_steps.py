"""Steps over gRPC, with the messages of the official client."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.message import Message
from tritonclient.grpc import service_pb2, service_pb2_grpc

from conformance.runner import tensors
from conformance.runner.case import Seen, Step
from conformance.runner.repository import library_text
from conformance.runner.session import Session

CHANNEL_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
]


def open_channel(session: Session) -> grpc.Channel:
    """The channel of the case, opened when first needed."""
    if session.channel is None:
        session.channel = grpc.insecure_channel(f"127.0.0.1:{session.grpc_port}", options=CHANNEL_OPTIONS)
    return session.channel


def server_live(session: Session) -> bool:
    return call(session, {"grpc": "ServerLive", "timeout": 2}).get("code") == "OK"


def call(session: Session, step: Step) -> Seen:
    """Call a method of the inference service; the code and the message as JSON."""
    method = getattr(service_pb2_grpc.GRPCInferenceServiceStub(open_channel(session)), step["grpc"])
    metadata = [(key.lower(), str(value)) for key, value in step.get("metadata", {}).items()] or None
    try:
        if step["grpc"] == "ModelStreamInfer":
            return {"code": "OK", "responses": _stream(session, step, method, metadata)}
        answer = method(
            message(session, step["grpc"], step.get("request")),
            timeout=step.get("timeout", 30),
            metadata=metadata,
            compression=grpc.Compression.Gzip if step.get("compress") == "gzip" else None,
        )
    except grpc.RpcError as problem:
        detail = problem.details() or ""
        return {"code": problem.code().name, "detail": {"error": detail} if detail else {}}
    return {"code": "OK", "response": plain(answer)}


def _stream(session: Session, step: Step, method: Any, metadata: list[tuple[str, str]] | None) -> Any:
    requests = [message(session, step["grpc"], spec) for spec in step.get("requests", [])]

    def feed() -> Iterator[Message]:
        for one in requests:
            yield one
            time.sleep(step.get("gap", 0))

    answers = [plain(answer) for answer in method(feed(), timeout=step.get("timeout", 30), metadata=metadata)]
    if not step.get("group_by_id"):
        return answers
    grouped: dict[str, list[Any]] = {}
    for answer in answers:
        grouped.setdefault(answer.get("infer_response", {}).get("id", ""), []).append(answer)
    return {key: grouped[key] for key in sorted(grouped)}


def message(session: Session, method: str, spec: Any) -> Any:
    """The request message of a method from its JSON form, with tensors in the typed or raw contents."""
    kind = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"].methods_by_name[method].input_type.name
    spec = json.loads(json.dumps(spec or {}))
    inputs = spec["inputs"] if isinstance(spec.get("inputs"), list) else []
    tensors_given = [(i, one, one.pop("data")) for i, one in enumerate(inputs) if "data" in one]
    raws = [_raw(one, data) for _, one, data in tensors_given if one.get("raw")]
    typed = [(i, _field(one), data) for i, one, data in tensors_given if not one.pop("raw", False)]
    files = _file_parameters(method, spec)
    request = json_format.ParseDict(spec, getattr(service_pb2, kind)())
    for key, content in files.items():
        request.parameters[key].bytes_param = library_text(session, content).encode()
    for raw in raws:
        request.raw_input_contents.append(raw)
    for i, field, data in typed:
        values = [tensors.as_bytes(one) for one in tensors.flat(data)] if field == "bytes_contents" else tensors.flat(data)
        getattr(request.inputs[i].contents, field).extend(values)
    return request


def _raw(tensor: dict[str, Any], data: Any) -> bytes:
    raw = tensors.encode(tensor["datatype"], data)
    return raw[: len(raw) - tensor.pop("cut", 0)]


def _field(tensor: dict[str, Any]) -> str:
    return tensor.pop("field", None) or tensors.CONTENT_FIELD[tensor["datatype"]]


def _file_parameters(method: str, spec: dict[str, Any]) -> dict[str, str]:
    """Take file overrides out of a load request: they are raw bytes."""
    if method != "RepositoryModelLoad":
        return {}
    parameters = spec.get("parameters") or {}
    keys = [key for key, value in parameters.items() if isinstance(value, dict) and "file" in value]
    return {key: parameters.pop(key)["file"] for key in keys}


def plain(answer: Any) -> dict[str, Any]:
    """A message in its JSON mapping, raw outputs decoded as `data`."""
    shown: dict[str, Any] = json_format.MessageToDict(answer, preserving_proto_field_name=True)
    _decode_outputs(shown, answer)
    if "infer_response" in shown:
        _decode_outputs(shown["infer_response"], answer.infer_response)
    return shown


def _decode_outputs(shown: dict[str, Any], answer: Any) -> None:
    if not hasattr(answer, "raw_output_contents"):
        return
    shown.pop("raw_output_contents", None)
    for i, raw in enumerate(answer.raw_output_contents[: len(answer.outputs)]):
        shown["outputs"][i]["data"] = tensors.decode(answer.outputs[i].datatype, raw)


def raw_call(session: Session, step: Step) -> Seen:
    """A unary call of any service, message bytes as hex."""
    method = open_channel(session).unary_unary(step["grpc_raw"], None, None)
    try:
        return {"code": "OK", "hex": method(bytes.fromhex(step.get("hex", "")), timeout=step.get("timeout", 30)).hex()}
    except grpc.RpcError as problem:
        return {"code": problem.code().name}


KINDS = {"grpc": call, "grpc_raw": raw_call}
