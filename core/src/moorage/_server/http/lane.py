"""A lane past ASGI for plain inference requests: small, whole, one at a time on their connection.

For a small request most of the time goes into what ASGI needs: a scope, a task, four messages. Here the connection's protocol
decodes the request as soon as its last byte is there, and writes the response when the model has given it. Both use
`InferEndpoint`, so that the answers are the same to the byte. Whatever is unusual about a request sends it to the application.

The life of an exchange, all on the event loop:

    Lane.opens ──> collecting ──> running ──> answered
                       │             └──> abandoned     the client has gone, or the server's patience has ended
                       └──────────────────────┘

An exchange stands where uvicorn keeps the cycle of an ASGI request. By the attributes of a cycle uvicorn holds back pipelined
requests until it is answered, tells it that this is the last response before a shutdown, and that its client has gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from moorage._server.http.codec import OutputForms
from moorage._server.http.infer import InferEndpoint
from moorage._server.http.paths import Target, infer_segments, target
from moorage._server.http.replies import Header, Reply, error_reply
from moorage._server.ports import InferencePort
from moorage.types import InferRequest, InferResponse

LARGEST_BODY: Final = 64 * 1024
"""Longer bodies are read by the application, into one buffer."""

_UNUSUAL: Final = frozenset({b"transfer-encoding", b"content-encoding", b"accept-encoding", b"expect", b"upgrade"})
"""Headers of which the lane knows nothing."""

Segments = tuple[str, str]


class Lane:
    """Says which requests take the lane, and starts them. One for a server."""

    def __init__(self, endpoint: InferEndpoint, inference: InferencePort, largest_body: int) -> None:
        self._endpoint = endpoint
        self._start = inference.start
        self._largest = min(LARGEST_BODY, largest_body)

    def opens(self, method: bytes, url: bytes, headers: Sequence[Header]) -> Exchange | None:
        """The exchange for a request that has nothing unusual about it, else None."""
        segments = _segments(url)
        if segments is None or method != b"POST":
            return None
        given = dict(headers)
        length = given.get(b"content-length", b"")
        if not (length.isdigit() and len(length) < 10 and int(length) <= self._largest and _UNUSUAL.isdisjoint(given)):
            return None
        return Exchange(self._endpoint, segments, given)

    def run(self, exchange: Exchange) -> None:
        """Start the request of an exchange whose body is complete. What is wrong with it becomes its answer."""
        try:
            self._start(exchange.decode(), exchange.answered)
        except Exception as error:  # noqa: BLE001 whatever it is, the client gets an answer
            exchange.respond(error_reply(error))


class Exchange:
    """One request and its response."""

    __slots__ = (
        "_endpoint",
        "_forms",
        "_headers",
        "_model",
        "_request",
        "_segments",
        "body",
        "disconnected",
        "keep_alive",
        "message_event",
        "response_complete",
        "write",
    )

    def __init__(self, endpoint: InferEndpoint, segments: Segments, headers: Mapping[bytes, bytes]) -> None:
        self._endpoint = endpoint
        self._segments = segments
        self._headers = headers
        self._model: Target
        self._forms: OutputForms
        self._request: InferRequest | None = None
        self.body: bytes = b""
        self.write: Callable[[Exchange, Reply], None]
        """Set by the connection that collects the body."""
        # What uvicorn asks of a cycle:
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False
        self.message_event = _NO_EVENT

    def decode(self) -> InferRequest:
        """The request. Raises MoorageError."""
        endpoint = self._endpoint
        endpoint.admit(self._headers)
        self._model = model = _target(*self._segments)
        request, self._forms = endpoint.decode(model, self._headers, memoryview(self.body))
        self._request = request
        return request

    def answered(self, result: InferResponse | Exception) -> None:
        """Send what the model has given."""
        if self.response_complete or self.disconnected or self._request is None:
            return
        try:
            if isinstance(result, Exception):
                raise result
            reply = self._endpoint.encode(self._model, result, self._forms, self._request.id)
        except Exception as error:  # noqa: BLE001 whatever it is, the client gets an answer
            reply = error_reply(error)
        self.respond(reply)

    def respond(self, reply: Reply) -> None:
        """Send a response."""
        self.response_complete = True
        self.write(self, reply)

    def abandon(self) -> None:
        """Nobody waits for the response any more."""
        self.disconnected = True
        if self._request is not None:
            self._request.cancelled = True


class _NoEvent:
    """uvicorn wakes the task of a cycle by an event; here is no task."""

    def set(self) -> None:
        return None


_NO_EVENT: Final[Any] = _NoEvent()


class Heads:
    """Writes the heads of responses. The part that changes once a second, the date, is kept until it does."""

    def __init__(self) -> None:
        self._defaults: Sequence[Header] | None = None
        self._text = b""

    def head(self, defaults: Sequence[Header], reply: Reply, *, keep_alive: bool) -> bytes:
        """Status line and headers: the server's own, the reply's, the length."""
        if defaults is not self._defaults:
            self._defaults = defaults
            self._text = _lines(defaults)
        size = sum(map(len, reply.body))
        close = b"" if keep_alive else b"connection: close\r\n"
        return b"%b%b%bcontent-length: %d\r\n%b\r\n" % (
            STATUS_LINE[reply.status],
            self._text,
            _lines(reply.headers),
            size,
            close,
        )


def _lines(headers: Sequence[Header]) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


@lru_cache(maxsize=1024)
def _segments(url: bytes) -> Segments | None:
    """The parts of the path, None for what needs a closer look or is something else."""
    if not url.isascii() or b"?" in url or b"#" in url:
        return None
    return infer_segments(url)


_target = lru_cache(maxsize=1024)(target)
