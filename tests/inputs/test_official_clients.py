"""Triton's own Python clients, blocking and asyncio: every method works, or says clearly that the server does not do this."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc as triton_grpc
import tritonclient.grpc.aio as triton_grpc_aio
import tritonclient.http as triton_http
import tritonclient.http.aio as triton_http_aio
from tritonclient.utils import InferenceServerException

from inputs.conftest import Serve
from inputs.live import LiveServer
from inputs.models import copy, json_config
from inputs.repository import model

KINDS = {
    "http": (triton_http, triton_http.InferenceServerClient, 0),
    "http.aio": (triton_http, triton_http_aio.InferenceServerClient, 0),
    "grpc": (triton_grpc, triton_grpc.InferenceServerClient, 1),
    "grpc.aio": (triton_grpc, triton_grpc_aio.InferenceServerClient, 1),
}

Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def server(shared: Serve) -> LiveServer:
    return shared(
        model("copy", copy()),
        "--model-control-mode=explicit",
        "--load-model=copy",
    )


@pytest.fixture(params=KINDS)
def ask(request: pytest.FixtureRequest, server: LiveServer) -> Ask:
    """Calls a method of a client, whose kind is `ask.kind`."""
    package, make, port = KINDS[request.param]
    address = f"127.0.0.1:{server.ports[port]}"

    async def on_a_loop(name: str, arguments: tuple[Any, ...], more: dict[str, Any]) -> Any:
        client = make(address)
        try:
            return await getattr(client, name)(*arguments, **more)
        finally:
            await client.close()

    def call(name: str, *arguments: Any, **more: Any) -> Any:
        if inspect.iscoroutinefunction(make.get_server_metadata):
            return asyncio.run(on_a_loop(name, arguments, more))
        client = make(address)
        try:
            return getattr(client, name)(*arguments, **more)
        finally:
            client.close()

    call.package = package  # type: ignore[attr-defined]
    return call


def field(answer: Any, name: str) -> Any:
    return answer[name] if isinstance(answer, dict) else getattr(answer, name)


def copied(ask: Ask, *values: float, name: str = "X", **more: Any) -> Any:
    package = ask.package  # type: ignore[attr-defined]
    tensor = package.InferInput(name, [len(values)], "FP32")
    tensor.set_data_from_numpy(np.array(values, np.float32))
    return ask("infer", "copy", [tensor], **more)


def test_health(ask: Ask) -> None:
    assert ask("is_server_live")
    assert ask("is_server_ready")
    assert ask("is_model_ready", "copy", "1")
    assert not ask("is_model_ready", "unknown")


def test_metadata_and_configuration(ask: Ask) -> None:
    assert "binary_tensor_data" in field(ask("get_server_metadata"), "extensions")
    assert field(ask("get_model_metadata", "copy"), "platform") == "python"
    found = ask("get_model_config", "copy")
    assert field(found if isinstance(found, dict) else found.config, "backend") == "python"


def test_management(ask: Ask) -> None:
    ask("load_model", "copy", config=json_config(instance_group=[{"count": 2}]))
    ask("load_model", "copy")
    ask("unload_model", "unknown", unload_dependents=True)
    found = ask("get_model_repository_index")
    (entry,) = found if isinstance(found, list) else found.models
    assert (field(entry, "name"), field(entry, "state")) == ("copy", "READY")


def test_statistics_and_log_settings(ask: Ask) -> None:
    (one,) = field(ask("get_inference_statistics", "copy"), "model_stats")
    assert field(one, "version") == "1"
    settings = ask("update_log_settings", {"log_verbose_level": 1})
    level = settings["log_verbose_level"] if isinstance(settings, dict) else settings.settings["log_verbose_level"].uint32_param
    assert level == 1
    ask("update_log_settings", {"log_verbose_level": 0})


def test_inference(ask: Ask) -> None:
    result = copied(ask, 1.5, 2.5, request_id="r", priority=1, timeout=10_000_000, parameters={"tone": "loud"})
    assert result.as_numpy("Y").tolist() == [1.5, 2.5]


def test_errors_can_be_read(ask: Ask) -> None:
    with pytest.raises(InferenceServerException, match=r"no input.*WRONG"):
        copied(ask, 1.0, name="WRONG")
    with pytest.raises(InferenceServerException, match="unknown"):
        ask("get_model_metadata", "unknown")


@pytest.mark.parametrize(
    "call",
    [
        ("get_trace_settings",),
        ("update_trace_settings", "copy", {"trace_rate": "5"}),
        ("register_system_shared_memory", "region", "/key", 64),
        ("register_cuda_shared_memory", "region", b"aGFuZGxl", 0, 64),
    ],
    ids=lambda call: call[0],
)
def test_what_is_not_supported_says_so(ask: Ask, call: tuple[Any, ...]) -> None:
    with pytest.raises(InferenceServerException, match=r"no trace settings|cannot be registered"):
        ask(*call)


def test_no_region_is_registered(ask: Ask) -> None:
    for kind in ("system", "cuda"):
        found = ask(f"get_{kind}_shared_memory_status")
        assert not (found if isinstance(found, list) else found.regions)
        ask(f"unregister_{kind}_shared_memory")
