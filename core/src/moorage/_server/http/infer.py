"""The infer endpoint: from a request's bytes to the bytes of its response, by the shortest way."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moorage._server.http.asgi import Receive, Scope, Send
from moorage._server.http.body import read_body
from moorage._server.http.codec import EncodedResponse, OutputForms, decode_raw, decode_request, encode_response
from moorage._server.http.codec.parameters import RESERVED, RESERVED_PREFIX
from moorage._server.http.compression import CompressedSend, accepted_coding
from moorage._server.http.disconnects import DisconnectWatch
from moorage._server.http.options import HttpOptions
from moorage._server.http.paths import Target, target
from moorage._server.http.replies import JSON, Reply, error_reply, send_reply
from moorage._server.http.restrictions import check_restriction
from moorage._server.ports import AdminPort, InferencePort
from moorage.errors import MoorageError, RequestError, TooLarge
from moorage.types import InferRequest, InferResponse

_BINARY = (b"content-type", b"application/octet-stream")
_HEADER_LENGTH = b"inference-header-content-length"


class InferEndpoint:
    """Answers `POST /v2/models/NAME[/versions/VERSION]/infer`."""

    def __init__(self, inference: InferencePort, admin: AdminPort, options: HttpOptions) -> None:
        self._infer = inference.infer
        self._admin = admin
        self._limit = options.max_input_size
        self._watch = DisconnectWatch()
        self._halves = options.json_halves
        self._restriction = options.restricted.get("inference")
        self._forwarded = re.compile(options.header_forward_pattern, re.IGNORECASE) if options.header_forward_pattern else None

    async def __call__(self, name: str, version: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; `name` and `version` are still encoded parts of the path."""
        headers = dict(scope["headers"])
        if accepted := headers.get(b"accept-encoding"):
            coding = accepted_coding(accepted.decode("latin-1"))
            send = CompressedSend(send, coding) if coding else send
        try:
            self.admit(headers)
            reply = await self._reply(target(name, version), scope, headers, receive)
        except TooLarge as error:
            # Whoever waits for permission to send a body will not send it now, and the connection is of no more use.
            reply = error_reply(error, close=b"expect" in headers)
        except Exception as error:  # noqa: BLE001 whatever it is, the client gets an answer
            reply = error_reply(error)
        await send_reply(send, reply)

    def admit(self, headers: Mapping[bytes, bytes]) -> None:
        """Raises Forbidden if inference is restricted and the headers lack the secret."""
        check_restriction(self._restriction, headers)

    def decode(self, model: Target, headers: Mapping[bytes, bytes], body: memoryview) -> tuple[InferRequest, OutputForms]:
        """The request in a body, and how its outputs are to be sent. Raises MoorageError."""
        try:
            request, forms = self._decode(model, _announced_json(headers), body)
            if self._forwarded is not None:
                _forward(self._forwarded, request, headers)
        except RequestError as error:
            raise _named(model, error) from error
        return request, forms

    def encode(self, model: Target, response: InferResponse, forms: OutputForms, request_id: str) -> Reply:
        """What the client is sent. Raises MoorageError."""
        if response.error is not None:
            raise response.error
        try:
            encoded = encode_response(response, forms, request_id, json_halves=self._halves)
        except RequestError as error:
            raise _named(model, error) from error
        return Reply(200, _headers(encoded), encoded.parts)

    async def _reply(self, model: Target, scope: Scope, headers: Mapping[bytes, bytes], receive: Receive) -> Reply:
        try:
            body = await read_body(scope, receive, headers, self._limit, _announced_json(headers) or 0)
        except (RequestError, TooLarge) as error:
            raise _named(model, error) from error
        request, forms = self.decode(model, headers, body)
        watched = self._watch.add(request, receive)
        try:
            response = await self._infer(request)
        finally:
            self._watch.remove(watched)
        return self.encode(model, response, forms, request.id)

    def _decode(self, model: Target, announced: int | None, body: memoryview) -> tuple[InferRequest, OutputForms]:
        if announced == 0:
            config = self._admin.model_config(model.name, model.version)
            return decode_raw(body, model.name, model.version, config)
        length = len(body) if announced is None else announced
        if length > len(body):
            raise RequestError(f"Inference-Header-Content-Length is {length}, the body has only {len(body)} bytes")
        return decode_request(body, length, model.name, model.version, json_halves=self._halves)


def _named(model: Target, error: MoorageError) -> MoorageError:
    return type(error)(f"model '{model.name}': {error}")


def _forward(pattern: re.Pattern[str], request: InferRequest, headers: Mapping[bytes, bytes]) -> None:
    for raw, value in headers.items():
        name = raw.decode("latin-1")
        if pattern.search(name):
            if name in RESERVED or name.startswith(RESERVED_PREFIX):
                raise RequestError(f"header '{name}' is reserved and cannot be forwarded as a parameter")
            request.parameters[name] = value.decode("latin-1")


def _announced_json(headers: Mapping[bytes, bytes]) -> int | None:
    value = headers.get(_HEADER_LENGTH)
    if value is None:
        return None
    if not value.isdigit() or len(value) > 18:
        raise RequestError(f"Inference-Header-Content-Length must be a whole number, got '{value.decode('latin-1')[:40]}'")
    return int(value)


def _headers(encoded: EncodedResponse) -> list[tuple[bytes, bytes]]:
    if encoded.header_length is None:
        return [JSON]
    return [_BINARY, (_HEADER_LENGTH, b"%d" % encoded.header_length)]
