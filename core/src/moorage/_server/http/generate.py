"""The generate endpoints: one flat JSON object in, one out, or a stream of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from moorage._server.http.asgi import Receive, Scope, Send
from moorage._server.http.body import read_body
from moorage._server.http.codec.generate import decode_generate, encode_generate
from moorage._server.http.disconnects import DisconnectWatch
from moorage._server.http.events import EVENT_STREAM, Responses, event
from moorage._server.http.options import HttpOptions
from moorage._server.http.paths import GeneratePath, Target, target
from moorage._server.http.replies import JSON, STATUS, Reply, error_body, error_reply, send_reply
from moorage._server.http.restrictions import check_restriction
from moorage._server.ports import AdminPort, InferencePort
from moorage.errors import MoorageError, RequestError, TooLarge
from moorage.types import InferRequest, InferResponse

_NOT_ONE = "generate needs a model that gives exactly one response, this request had {}; use generate_stream"


class GenerateEndpoint:
    """Answers `POST /v2/models/NAME[/versions/VERSION]/generate` and `/generate_stream`."""

    def __init__(self, inference: InferencePort, admin: AdminPort, options: HttpOptions) -> None:
        self._submit = inference.submit
        self._admin = admin
        self._limit = options.max_input_size
        self._halves = options.json_halves
        self._restriction = options.restricted.get("inference")
        self._watch = DisconnectWatch()

    async def __call__(self, path: GeneratePath, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        headers = dict(scope["headers"])
        try:
            check_restriction(self._restriction, headers)
            request = await self._decode(target(path.name, path.version), scope, headers, receive)
            responses = Responses(asyncio.get_running_loop())
            self._submit(request, responses)
        except Exception as error:  # noqa: BLE001 whatever it is, the client gets an answer
            await send_reply(send, error_reply(error, close=isinstance(error, TooLarge) and b"expect" in headers))
            return
        await self._answer(request, responses, receive, send, streaming=path.streaming)

    async def _decode(self, model: Target, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> InferRequest:
        config = self._admin.model_config(*model)
        try:
            body = await read_body(scope, receive, headers, self._limit)
            return decode_generate(body, model.name, model.version, config, json_halves=self._halves)
        except (RequestError, TooLarge) as error:
            raise type(error)(f"model '{model.name}': {error}") from error

    async def _answer(
        self, request: InferRequest, responses: Responses, receive: Receive, send: Send, *, streaming: bool
    ) -> None:
        watched = self._watch.add(request, receive)
        try:
            answers = self._encoded(request, responses)
            await (_send_events(answers, send) if streaming else _send_one(answers, send))
        except asyncio.CancelledError:
            request.cancelled = True
            raise
        finally:
            self._watch.remove(watched)

    async def _encoded(self, request: InferRequest, responses: Responses) -> AsyncIterator[tuple[int, bytes]]:
        """The status and the JSON of each response."""
        async for response in responses:
            try:
                yield 200, self._encode(response, request)
            except MoorageError as error:
                yield STATUS[error.code], error_body(str(error))

    def _encode(self, response: InferResponse | MoorageError, request: InferRequest) -> bytes:
        if isinstance(response, MoorageError):
            raise response
        try:
            return encode_generate(response, request.id, json_halves=self._halves)
        except RequestError as error:
            raise RequestError(f"model '{request.model_name}': {error}") from error


async def _send_events(answers: AsyncIterator[tuple[int, bytes]], send: Send) -> None:
    """An event for each response. The status is that of the first; an error behind it is an event like others."""
    started = False
    async for status, body in answers:
        if not started:
            await send({"type": "http.response.start", "status": status, "headers": [EVENT_STREAM]})
            started = True
        await send({"type": "http.response.body", "body": event(body), "more_body": True})
    if not started:
        await send({"type": "http.response.start", "status": 200, "headers": [EVENT_STREAM]})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _send_one(answers: AsyncIterator[tuple[int, bytes]], send: Send) -> None:
    """The one response. If there is none, or several, the body tells so, and the status stays that of the first."""
    first: tuple[int, bytes] | None = None
    count = 0
    async for answer in answers:
        first = first or answer
        count += 1
    status, body = first or (200, b"")
    if count != 1:
        body = error_body(_NOT_ONE.format(count or "none"))
    await send_reply(send, Reply(status, [JSON], [body]))
