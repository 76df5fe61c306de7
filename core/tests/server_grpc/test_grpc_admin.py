from __future__ import annotations

import contextlib
from typing import Any

import grpc
import pytest
import tritonclient.grpc as triton
from google.protobuf.json_format import MessageToDict
from tritonclient.grpc import service_pb2 as pb

from moorage.control import LoadOptions

SERVICE = pb.DESCRIPTOR.services_by_name["GRPCInferenceService"]


def shown(message: Any) -> dict[str, Any]:
    return MessageToDict(message, preserving_proto_field_name=True)


def test_every_method_of_the_service_is_there(client: Any) -> None:
    for method in SERVICE.methods:
        call = client.channel.stream_stream(f"/{SERVICE.full_name}/{method.name}")(iter((b"",)), timeout=10)
        with contextlib.suppress(grpc.RpcError):
            list(call)
        assert call.details() != "Method not found!", method.name


def test_health(client: Any, admin: Any) -> None:
    assert client.stub.ServerLive(pb.ServerLiveRequest()).live
    assert client.stub.ServerReady(pb.ServerReadyRequest()).ready
    admin.is_ready = False
    assert not client.stub.ServerReady(pb.ServerReadyRequest()).ready


@pytest.mark.parametrize(
    "name,version,ready",
    [("echo", "", True), ("echo", "1", True), ("echo", "7", False), ("nobody", "", False), ("", "", False)],
)
def test_model_ready(client: Any, name: str, version: str, ready: bool) -> None:
    assert client.stub.ModelReady(pb.ModelReadyRequest(name=name, version=version)).ready is ready


@pytest.mark.parametrize("method", ["ModelReady", "ModelMetadata", "ModelConfig", "ModelStatistics"])
def test_a_version_that_is_none_is_the_clients_mistake(client: Any, method: str) -> None:
    request = getattr(pb, f"{method}Request")(name="echo", version="abc")

    code, details = client.error(getattr(client.stub, method), request)

    assert code == "INVALID_ARGUMENT"
    assert "echo" in details


def test_metadata(client: Any) -> None:
    assert shown(client.stub.ServerMetadata(pb.ServerMetadataRequest())) == {
        "name": "triton",
        "version": "1.2",
        "extensions": ["classification", "sequence"],
    }
    tensor = {"name": "IN", "datatype": "INT32", "shape": ["-1", "3"]}
    assert shown(client.stub.ModelMetadata(pb.ModelMetadataRequest(name="echo"))) == {
        "name": "echo",
        "versions": ["1"],
        "platform": "python",
        "inputs": [tensor],
        "outputs": [tensor],
    }
    assert client.error(client.stub.ModelMetadata, pb.ModelMetadataRequest(name="nobody"))[0] == "NOT_FOUND"


def test_config(client: Any) -> None:
    config = client.stub.ModelConfig(pb.ModelConfigRequest(name="echo")).config

    assert (config.name, config.backend, config.max_batch_size) == ("echo", "python", 4)


def test_statistics_show_every_duration(client: Any) -> None:
    (model,) = shown(client.stub.ModelStatistics(pb.ModelStatisticsRequest()))["model_stats"]

    some = {"count": "2", "ns": "50"}
    assert (model["name"], model["version"], model["last_inference"]) == ("echo", "1", "7")
    assert (model["inference_count"], model["execution_count"]) == ("3", "2")
    counted = dict.fromkeys(("success", "queue", "compute_input", "compute_infer", "compute_output"), some)
    assert model["inference_stats"] == {**counted, "fail": {}, "cache_hit": {}, "cache_miss": {}}
    assert model["batch_stats"] == [{"batch_size": "2", "compute_input": some, "compute_infer": some, "compute_output": {}}]


def test_statistics_of_an_unknown_model_are_the_clients_mistake(client: Any) -> None:
    code, details = client.error(client.stub.ModelStatistics, pb.ModelStatisticsRequest(name="nobody"))

    assert code == "INVALID_ARGUMENT"
    assert "nobody" in details


def test_index(client: Any) -> None:
    served = {"name": "echo", "version": "1", "state": "READY"}

    assert shown(client.stub.RepositoryIndex(pb.RepositoryIndexRequest())) == {"models": [served, {"name": "new"}]}
    assert shown(client.stub.RepositoryIndex(pb.RepositoryIndexRequest(ready=True))) == {"models": [served]}


def test_load_and_unload(client: Any, admin: Any) -> None:
    load = pb.RepositoryModelLoadRequest(model_name="new")
    load.parameters["config"].string_param = "{}"
    load.parameters["file:1/model.py"].bytes_param = b"\0x"
    load.parameters["reload"].string_param = "always"
    load.parameters["versions"].string_param = "1, 3"
    unload = pb.RepositoryModelUnloadRequest(model_name="new")
    unload.parameters["unload_dependents"].bool_param = True

    client.stub.RepositoryModelLoad(load)
    client.stub.RepositoryModelUnload(unload)
    client.stub.RepositoryModelUnload(pb.RepositoryModelUnloadRequest(model_name="new"))
    unload = pb.RepositoryModelUnloadRequest(model_name="new")
    unload.parameters["versions"].int64_param = 2
    client.stub.RepositoryModelUnload(unload)

    assert admin.loads == [("new", LoadOptions("{}", {"1/model.py": b"\0x"}, force=True, versions=frozenset({1, 3})))]
    assert admin.unloads == [("new", True, frozenset()), ("new", False, frozenset()), ("new", False, frozenset({2}))]


@pytest.mark.parametrize(
    "parameter,field,value",
    [
        ("config", "int64_param", 5),
        ("file:1/x", "string_param", "x"),
        ("colour", "string_param", "red"),
        ("config", None, None),
        ("reload", "string_param", "sometimes"),
        ("reload", "bool_param", True),
        ("versions", "string_param", "1;3"),
        ("versions", "bool_param", True),
    ],
)
def test_wrong_load_parameters(client: Any, admin: Any, parameter: str, field: str | None, value: Any) -> None:
    request = pb.RepositoryModelLoadRequest(model_name="new")
    if field is None:
        request.parameters[parameter].SetInParent()
    else:
        setattr(request.parameters[parameter], field, value)

    code, details = client.error(client.stub.RepositoryModelLoad, request)

    assert code == "INVALID_ARGUMENT"
    assert "new" in details
    assert parameter in details
    assert not admin.loads


@pytest.mark.parametrize(
    "parameter,field", [("unload_dependents", "string_param"), ("colour", "bool_param"), ("versions", "string_param")]
)
def test_wrong_unload_parameters(client: Any, admin: Any, parameter: str, field: str) -> None:
    request = pb.RepositoryModelUnloadRequest(model_name="new")
    setattr(request.parameters[parameter], field, {"string_param": "yes", "bool_param": True}[field])

    assert client.error(client.stub.RepositoryModelUnload, request)[0] == "INVALID_ARGUMENT"
    assert not admin.unloads


@pytest.mark.parametrize("method", ["RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload"])
def test_one_repository_cannot_be_named(client: Any, method: str) -> None:
    request = getattr(pb, f"{method}Request")(repository_name="somewhere")

    assert client.error(getattr(client.stub, method), request)[0] == "UNIMPLEMENTED"


def test_errors_of_the_service_are_statuses_and_bugs_are_hidden(client: Any, caplog: pytest.LogCaptureFixture) -> None:
    code, details = client.error(client.stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="missing"))
    assert code == "NOT_FOUND"
    assert "missing" in details

    code, details = client.error(client.stub.RepositoryModelLoad, pb.RepositoryModelLoadRequest(model_name="bug"))
    assert code == "INTERNAL"
    assert "ZeroDivisionError" not in details
    assert "ZeroDivisionError" in caplog.text


def test_log_settings(client: Any) -> None:
    before = shown(client.stub.LogSettings(pb.LogSettingsRequest()))
    request = pb.LogSettingsRequest()
    request.settings["log_info"].bool_param = False
    request.settings["log_verbose_level"].uint32_param = 1
    after = shown(client.stub.LogSettings(request))

    unchanged = {"log_file": {"string_param": ""}}
    assert before == {"settings": {**unchanged, "log_info": {"bool_param": True}, "log_verbose_level": {"uint32_param": 2}}}
    assert after == {"settings": {**unchanged, "log_info": {"bool_param": False}, "log_verbose_level": {"uint32_param": 1}}}
    request.settings["log_file"].SetInParent()
    assert client.error(client.stub.LogSettings, request)[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("kind", ["System", "Cuda"])
def test_shared_memory_is_empty_and_refuses(client: Any, kind: str) -> None:
    def call(verb: str) -> Any:
        name = f"{kind}SharedMemory{verb}"
        return getattr(client.stub, name), getattr(pb, f"{name}Request")(name="region")

    for verb in ("Status", "Unregister"):
        method, request = call(verb)
        assert shown(method(request)) == {}
    method, request = call("Register")
    assert client.error(method, request)[0] == "UNIMPLEMENTED"


def test_a_request_that_does_not_parse_is_the_clients_mistake(client: Any) -> None:
    call = client.channel.unary_unary("/inference.GRPCInferenceService/ModelReady")

    code, details = client.error(call, b"\x0a\xff")

    assert code == "INVALID_ARGUMENT"
    assert "ModelReadyRequest" in details


def test_the_official_client_agrees(serve: Any) -> None:
    client = triton.InferenceServerClient(f"127.0.0.1:{serve().port}")

    assert client.is_server_live()
    assert client.is_model_ready("echo")
    assert client.get_model_metadata("echo").platform == "python"
    assert client.get_model_repository_index().models[1].name == "new"
    client.load_model("new", config="{}", files={"file:1/model.py": b"x"})
    client.unload_model("new")
    client.close()
