from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tritonclient.grpc import service_pb2 as pb

from moorage._server.grpc import GrpcOptions, GrpcServer, KeepAlive, Restriction, Tls, parse_restriction
from moorage._server.grpc.options import channel_options, listening_address
from moorage._server.grpc.status import details_of, status_of
from moorage.errors import Code, InvalidArgument, MoorageError, Unavailable

ONE = np.array([1], "<i4")


@pytest.mark.parametrize("method", ["/inference.GRPCInferenceService/NoSuchCall", "/no.such.Service/Call"])
def test_unknown_methods_are_unimplemented(client: Any, method: str) -> None:
    assert client.error(client.channel.unary_unary(method), b"")[0] == "UNIMPLEMENTED"


def test_standard_health(client: Any, admin: Any) -> None:
    assert client.channel.unary_unary("/grpc.health.v1.Health/Check")(b"") == bytes.fromhex("0801")
    stub = health_pb2_grpc.HealthStub(client.channel)
    admin.is_ready = False
    service = health_pb2.HealthCheckRequest(service="inference.GRPCInferenceService")
    assert stub.Check(service).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert client.error(stub.Check, health_pb2.HealthCheckRequest(service="nothing"))[0] == "NOT_FOUND"


def test_health_can_be_watched(client: Any, admin: Any) -> None:
    stub = health_pb2_grpc.HealthStub(client.channel)
    watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=20)

    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    admin.is_ready = False
    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    watch.cancel()
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="nothing"), timeout=20)
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    unknown.cancel()


def reflect(client: Any, **question: Any) -> Any:
    stub = reflection_pb2_grpc.ServerReflectionStub(client.channel)
    (answer,) = stub.ServerReflectionInfo(iter((reflection_pb2.ServerReflectionRequest(**question),)), timeout=10)
    return answer


def test_reflection_lists_the_services(client: Any) -> None:
    services = {service.name for service in reflect(client, list_services="").list_services_response.service}

    assert {"inference.GRPCInferenceService", "grpc.health.v1.Health"} < services


@pytest.mark.parametrize(
    "symbol,file",
    [
        ("inference.GRPCInferenceService", "grpc_service.proto"),
        ("inference.ModelConfig", "model_config.proto"),
        ("grpc.health.v1.Health", "health.proto"),
        ("grpc.reflection.v1alpha.ServerReflection", "reflection.proto"),
    ],
)
def test_reflection_describes_symbols(client: Any, symbol: str, file: str) -> None:
    answer = reflect(client, file_containing_symbol=symbol).file_descriptor_response

    names = [FileDescriptorProto.FromString(raw).name for raw in answer.file_descriptor_proto]
    assert any(name.endswith(file) for name in names)


def test_reflection_answers_by_its_newer_name(client: Any) -> None:
    call = client.channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    question = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()

    (answer,) = call(iter((question,)), timeout=10)

    assert len(reflection_pb2.ServerReflectionResponse.FromString(answer).list_services_response.service) == 4


def test_restricted_calls_need_their_header(connect: Any) -> None:
    client = connect(restrictions=(parse_restriction("inference,model-repository:admin-key=sesame"),))
    index, request = client.stub.RepositoryIndex, pb.RepositoryIndexRequest()

    assert client.stub.ServerLive(pb.ServerLiveRequest()).live
    code, details = client.error(index, request)
    assert code == "UNAVAILABLE"
    assert "triton-grpc-protocol-admin-key" in details
    assert client.error(index, request, metadata=[("admin-key", "sesame")])[0] == "UNAVAILABLE"
    assert client.error(index, request, metadata=[("triton-grpc-protocol-admin-key", "open")])[0] == "UNAVAILABLE"
    assert client.error(client.stub.ModelInfer, client.request("echo", A=ONE))[0] == "UNAVAILABLE"
    assert client.error(list, client.stub.ModelStreamInfer(iter(())))[0] == "UNAVAILABLE"

    key = [("triton-grpc-protocol-admin-key", "sesame")]
    assert len(index(request, metadata=key).models) == 2
    assert client.stub.ModelInfer(client.request("echo", A=ONE), metadata=key).model_name == "echo"


def test_restrictions_are_parsed() -> None:
    assert parse_restriction("health, trace:Key=a=b") == Restriction(("health", "trace"), "Key", "a=b")
    assert parse_restriction("health:Key=v").header == "triton-grpc-protocol-key"


@pytest.mark.parametrize("text", ["health", "health:key", "health:=v", "weather:key=v", ":key=v"])
def test_wrong_restrictions_are_refused(text: str) -> None:
    with pytest.raises(InvalidArgument, match="restricted protocol"):
        parse_restriction(text)


def test_a_taken_port_is_refused(serve: Any) -> None:
    with pytest.raises(Unavailable, match="--grpc-port"):
        serve(port=serve().port)


def test_a_stopped_server_can_be_stopped_and_started(loop: Any, inference: Any, admin: Any) -> None:
    def run(work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, loop).result(10)

    server = GrpcServer(inference, admin, GrpcOptions(port=0))
    run(server.stop(0))
    for _ in range(2):
        run(server.start())
        run(server.stop(0))


def test_stop_lets_running_requests_finish(loop: Any, client: Any, gate: Any) -> None:
    running = client.stub.ModelInfer.future(client.request("slow", A=ONE))
    assert gate.entered.wait(10)

    stopping = asyncio.run_coroutine_threadsafe(client.server.stop(20), loop)
    gate.opened.set()

    assert running.result(10).model_name == "slow"
    stopping.result(10)
    assert client.error(client.stub.ServerLive, pb.ServerLiveRequest(), timeout=1)[0] in ("UNAVAILABLE", "DEADLINE_EXCEEDED")


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost, signed by itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.mark.parametrize("mutual", [False, True])
def test_tls(serve: Any, pem: tuple[Path, Path], mutual: bool) -> None:
    certificate, key = pem
    port = serve(tls=Tls(certificate, key, certificate, mutual=mutual)).port

    def live(*pair: bytes) -> bytes:
        trusted = grpc.ssl_channel_credentials(certificate.read_bytes(), *pair)
        with grpc.secure_channel(f"localhost:{port}", trusted) as channel:
            call: Any = channel.unary_unary("/inference.GRPCInferenceService/ServerLive", None, None)
            answer: bytes = call(b"", timeout=5)
            return answer

    assert live(key.read_bytes(), certificate.read_bytes()) == b"\x08\x01"
    if mutual:
        with pytest.raises(grpc.RpcError):
            live()
    else:
        assert live() == b"\x08\x01"


def test_wrong_tls_is_refused(serve: Any, pem: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, key = pem
    with pytest.raises(InvalidArgument, match="absent"):
        serve(tls=Tls(tmp_path / "absent", key))
    with pytest.raises(InvalidArgument, match="--grpc-root-cert"):
        serve(tls=Tls(certificate, key, mutual=True))


def test_options_become_channel_arguments() -> None:
    options = GrpcOptions(
        compression="medium",
        reuse_port=True,
        keepalive=KeepAlive(time_ms=5, max_connection_age_ms=7, max_connection_age_grace_ms=8),
    )
    arguments = dict(channel_options(options))

    assert arguments["grpc.max_receive_message_length"] == -1
    assert arguments["grpc.keepalive_time_ms"] == 5
    assert arguments["grpc.max_connection_age_ms"] == 7
    assert arguments["grpc.max_connection_age_grace_ms"] == 8
    assert arguments["grpc.default_compression_level"] == 2
    assert arguments["grpc.so_reuseport"] == 1
    assert "grpc.max_connection_age_ms" not in dict(channel_options(GrpcOptions()))


def test_wrong_options_are_refused(inference: Any, admin: Any) -> None:
    with pytest.raises(InvalidArgument, match="compression"):
        channel_options(GrpcOptions(compression="huge"))
    with pytest.raises(InvalidArgument, match="--grpc-header-forward-pattern"):
        GrpcServer(inference, admin, GrpcOptions(header_forward_pattern="("))


@pytest.mark.parametrize("address,text", [("127.0.0.1", "127.0.0.1:8001"), ("::1", "[::1]:8001"), ("[::1]", "[::1]:8001")])
def test_addresses(address: str, text: str) -> None:
    assert listening_address(GrpcOptions(address=address)) == text


def test_every_code_has_a_status() -> None:
    for code in Code:
        error = type("Some", (MoorageError,), {"code": code})("x")
        assert status_of(error) is not grpc.StatusCode.OK


def test_short_messages_stay_whole() -> None:
    assert details_of("ä" * 900) == "ä" * 900
    assert details_of("x" * 5999) == "x" * 5999
