"""Results on their way from models' threads to the event loop."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from moorage._inference.answer import Mailbox, OneResponse, resolving
from moorage.errors import Internal, MoorageError, Unavailable
from moorage.types import InferResponse


async def delivered(post: Any) -> list[Any]:
    """What a mailbox delivers when `post(mailbox, answered)` has run on another thread."""
    results: list[Any] = []
    mailbox = Mailbox(asyncio.get_running_loop())
    thread = threading.Thread(target=post, args=(mailbox, results.append))
    thread.start()
    thread.join(5)
    assert results == []  # not on the model's thread
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return results


async def test_all_that_waits_is_delivered_in_one_turn_and_in_order() -> None:
    responses = [InferResponse([]) for _ in range(5)]

    def post(mailbox: Mailbox, answered: Any) -> None:
        for response in responses:
            mailbox.post(answered, response)

    assert await delivered(post) == responses


async def test_one_that_fails_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    response = InferResponse([])

    def fails(_result: object) -> None:
        raise ZeroDivisionError

    def post(mailbox: Mailbox, answered: Any) -> None:
        mailbox.post(fails, response)
        mailbox.post(answered, response)

    assert await delivered(post) == [response]


async def test_the_one_response_arrives_however_the_model_ends() -> None:
    response, error = InferResponse([]), Unavailable("not now")

    def post(mailbox: Mailbox, answered: Any) -> None:
        OneResponse(partial(mailbox.post, answered), "m").send(response, final=True)
        early = OneResponse(partial(mailbox.post, answered), "m")
        early.send(response, final=False)
        early.complete()
        OneResponse(partial(mailbox.post, answered), "m").fail(error)
        OneResponse(partial(mailbox.post, answered), "m").send(InferResponse([], error=error), final=True)
        OneResponse(partial(mailbox.post, answered), "m").complete()

    *given, none = await delivered(post)
    assert given == [response, response, error, error]
    assert isinstance(none, Internal)


async def test_several_responses_are_refused() -> None:
    def post(mailbox: Mailbox, answered: Any) -> None:
        sink = OneResponse(partial(mailbox.post, answered), "m")
        sink.send(InferResponse([]), final=False)
        sink.send(InferResponse([]), final=True)

    (error,) = await delivered(post)
    assert "several responses" in str(error)


async def test_a_future_is_resolved_once() -> None:
    future: asyncio.Future[InferResponse] = asyncio.get_running_loop().create_future()
    answered = resolving(future)
    answered(MoorageError("first"))
    answered(InferResponse([]))
    with pytest.raises(MoorageError, match="first"):
        await future
