"""The server for asyncio: the same answers, in the caller's loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import moorage
from moorage.errors import DeadlineExceeded, Internal, InvalidArgument, ModelError, NotFound, Unavailable, Unsupported
from moorage.server import AsyncServer

if TYPE_CHECKING:
    from core.tests.app.conftest import AddModel, Stage

    from moorage.testing import RepositoryBuilder

PATIENCE = 20.0


def numbers(*values: float) -> dict[str, np.ndarray]:
    return {"X": np.array(values, np.float32)}


@pytest.fixture
async def make(repository: RepositoryBuilder) -> AsyncIterator[Callable[..., AsyncServer]]:
    """Makes servers that are closed at the end."""
    async with AsyncExitStack() as servers:

        def make_server(**options: Any) -> AsyncServer:
            server = AsyncServer(**{"model_repository": repository.path, **options})
            servers.push_async_callback(server.close)
            return server

        yield make_server


Make = Callable[..., AsyncServer]


async def told(event: Any) -> None:
    """Wait for an event of a thread."""
    assert await asyncio.to_thread(event.wait, PATIENCE)


async def test_requests_are_answered(make: Make) -> None:
    async with make() as server:
        result = await server.infer("double", numbers(1, 2), request_id="a", timeout=PATIENCE)
        assert (result["Y"].tolist(), result.request_id) == ([2, 4], "a")
        many = await asyncio.gather(*(server.infer("double", numbers(number)) for number in range(200)))
        assert [one["Y"][0] for one in many] == [2 * number for number in range(200)]
        assert server.live() and server.ready() and server.ready("double") and not server.ready("nobody")
        assert server.metadata("double").name == "double" and server.statistics()[0].success.count == 201
        assert [entry.state for entry in await server.index()] == ["READY"]
    assert not server.live() and not server.ready()
    assert moorage.AsyncServer is AsyncServer


async def test_errors_are_raised(make: Make, add: AddModel) -> None:
    add("fail")
    add("count", decoupled=True)
    async with make() as server:
        for name, error in (("nobody", NotFound), ("fail", ModelError), ("count", Unsupported)):
            with pytest.raises(error):
                await server.infer(name, numbers(1))


@pytest.mark.parametrize("way", ["timeout", "task"])
async def test_a_request_is_cancelled(make: Make, add: AddModel, stage: Stage, way: str) -> None:
    add("wait")
    async with make() as server:
        if way == "timeout":
            with pytest.raises(DeadlineExceeded, match="'wait'"):
                await server.infer("wait", numbers(1), timeout=0.01)
        else:
            task = asyncio.create_task(server.infer("wait", numbers(1)))
            await told(stage.entered)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        stage.gate.set()
        await told(stage.cancelled)


async def test_streams_are_read(make: Make, add: AddModel) -> None:
    add("count", decoupled=True)
    add("stumble", decoupled=True)
    async with make() as server:
        assert [response["Y"].tolist() async for response in server.stream("count", numbers(300))] == [[n] for n in range(300)]
        assert [response async for response in server.stream("count", numbers(0))] == []
        stream = server.stream("stumble", numbers(1))
        with pytest.raises(ModelError, match="stumbled"):
            await anext(stream)
        assert [response["Y"].tolist() async for response in stream] == [[1]]
        with pytest.raises(NotFound):
            server.stream("nobody", numbers(1))


async def test_every_response_wakes_who_waits(make: Make, add: AddModel, stage: Stage) -> None:
    add("step", decoupled=True)
    async with make() as server:
        stream = server.stream("step", numbers(3), timeout=PATIENCE)
        for number in range(3):
            waiting = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            stage.steps.release()
            assert (await waiting)["Y"].tolist() == [number]


@pytest.mark.parametrize("way", ["cancel", "with", "drop", "timeout", "task"])
async def test_a_stream_is_cancelled(make: Make, add: AddModel, stage: Stage, way: str) -> None:
    add("endless", decoupled=True)
    async with make() as server:
        stream = server.stream("endless", numbers(1), timeout=0.05 if way == "timeout" else None)
        assert (await anext(stream))["Y"].tolist() == [0]
        if way == "cancel":
            stream.cancel()
        elif way == "with":
            async with stream:
                pass
        elif way == "drop":
            del stream
            gc.collect()
        elif way == "task":
            task = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(DeadlineExceeded):
                await anext(stream)
            assert [response async for response in stream] == []
        await told(stage.cancelled)


async def test_models_come_and_go(make: Make) -> None:
    async with make(model_control_mode="explicit") as server:
        await server.load("double", files={"1/model.trial": b"triple"}, config={"backend": "trial", **_tensors()})
        assert (await server.infer("double", numbers(1)))["Y"].tolist() == [3]
        await server.unload("double")
        with pytest.raises(NotFound):
            await server.infer("double", numbers(1))
        with pytest.raises(InvalidArgument):
            await server.load("double", "{")


def _tensors() -> dict[str, Any]:
    kind = {"data_type": "TYPE_FP32", "dims": [-1]}
    return {"input": [{"name": "X", **kind}], "output": [{"name": "Y", **kind}]}


async def test_files_of_clients_are_not_trusted(make: Make) -> None:
    async with make(model_control_mode="explicit") as server:
        port = await server.serve_http(0)
        body = b'{"parameters": {"config": "{}", "file:1/model.trial": "dHJpcGxl"}}'
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v2/repository/models/double/load HTTP/1.1\nHost: x\nConnection: close\nContent-Length: {len(body)}\n\n"
        writer.write(head.replace("\n", "\r\n").encode() + body)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        assert b" 4" in answer.split(b"\r\n")[0] and b"allow-model-override" in answer


async def test_a_start_that_fails_leaves_nothing(make: Make, add: AddModel, no_thread_is_left: None) -> None:
    add("broken")
    server = make()
    with pytest.raises(Internal, match="cannot be read"):
        await server.start()
    assert not server.live()
    with pytest.raises(Unavailable, match="closed"):
        await server.infer("double", numbers(1))


async def test_running_requests_are_finished_at_the_end(
    make: Make, add: AddModel, stage: Stage, no_thread_is_left: None
) -> None:
    add("wait")
    server = await make().start()
    with pytest.raises(Unavailable, match="once"):
        await server.start()
    asked = asyncio.create_task(server.infer("wait", numbers(1)))
    await told(stage.entered)
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="closed"):
        await server.infer("double", numbers(1))
    stage.gate.set()
    assert await closing and await server.close()
    assert (await asked)["Y"].tolist() == [2]


async def test_nothing_can_be_asked_before_the_start(make: Make) -> None:
    server = make()
    for question in (server.index, server.serve_http):
        with pytest.raises(Unavailable, match="has not been started"):
            await question()
    assert not server.live() and await server.close()
