"""A small HTTP proxy between a client and an emulator: it counts requests and breaks what it is told to.

    with Proxy(emulator_url, kind=kind_of_request) as proxy:
        proxy.faults.append(Fault(of_kind("get"), status=500, times=2))
        ...                                  # the client's endpoint is proxy.url
        assert proxy.counts() == {"list": 1, "get": 3}

Without an emulator's URL it answers 404 to all that no fault answers: a stub. `latency` is added to each answer.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import socket
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from emulators.faults import ALWAYS, Fault, Seen, containing, every, of_kind

__all__ = ["ALWAYS", "Fault", "Proxy", "Seen", "containing", "every", "of_kind"]

_PIECE = 256 << 10
_OWN_HEADERS = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
_TIMEOUT = 60.0


class Proxy:
    """Serves on a free port of 127.0.0.1 until it is closed. Its attributes may be changed between requests."""

    def __init__(
        self,
        upstream: str = "",
        *,
        kind: Callable[[Seen], str] = lambda _: "",
        latency: float = 0.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.upstream = upstream
        self.kind = kind
        self.latency = latency
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.most_at_once = 0
        """The largest number of requests that were under way at the same time."""
        self.closing = threading.Event()
        self._used: Counter[Fault] = Counter()
        self._under_way = 0
        self._lock = threading.Lock()
        self._server = _Server(self, tls)
        self.port: int = self._server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="proxy", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.end()

    def reset(self) -> None:
        """Forget the faults and what was seen."""
        with self._lock:
            self.faults.clear()
            self.seen.clear()
            self._used.clear()
            self.most_at_once = 0
        self.latency = 0.0

    def counts(self) -> dict[str, int]:
        """Requests since the last reset by kind."""
        with self._lock:
            return dict(Counter(one.kind for one in self.seen))

    def methods(self) -> dict[str, int]:
        """Requests since the last reset by method."""
        with self._lock:
            return dict(Counter(one.method for one in self.seen))

    @contextlib.contextmanager
    def note(self, seen: Seen) -> Iterator[list[Fault]]:
        """Remember a request while it is under way; the faults that it meets."""
        with self._lock:
            seen = seen._replace(kind=self.kind(seen))
            self.seen.append(seen)
            self._under_way += 1
            self.most_at_once = max(self.most_at_once, self._under_way)
            met = [fault for fault in self.faults if fault.when(seen) and self._due(fault)]
        try:
            yield met
        finally:
            with self._lock:
                self._under_way -= 1

    def _due(self, fault: Fault) -> bool:
        number = self._used[fault]
        self._used[fault] += 1
        return fault.skip <= number < fault.skip + fault.times


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, proxy: Proxy, tls: ssl.SSLContext | None) -> None:
        self.proxy = proxy
        self._tls = tls
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), _Handler)

    def end(self) -> None:
        """End the connections that clients keep open, and wait for their threads."""
        with self._guard:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def finish_request(self, request: Any, client_address: Any) -> None:
        """On the connection's own thread, the handshake included."""
        if self._tls is not None:
            request = self._tls.wrap_socket(request, server_side=True)
        with self._guard:
            self._open.add(request)
        try:
            super().finish_request(request, client_address)
        finally:
            with self._guard:
                self._open.discard(request)
            if self._tls is not None:
                request.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or does not trust the certificate, is no news; anything else is."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def setup(self) -> None:
        super().setup()
        self._upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the parameter's name in http.server)
        return

    def __getattr__(self, name: str) -> Callable[[], None]:
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        body = self._body()
        seen = Seen(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
        proxy = self.server.proxy
        with proxy.note(seen) as faults:
            proxy.closing.wait(proxy.latency + sum(fault.delay for fault in faults))
            for fault in faults:
                while fault.until is not None and not proxy.closing.is_set() and not fault.until.wait(0.02):
                    pass
            if proxy.closing.is_set() or any(fault.drop for fault in faults):
                self.close_connection = True
                return
            answer = next((fault for fault in faults if fault.status), None)
            if answer is None and not proxy.upstream:
                answer = Fault(status=404)
            if answer is not None:
                self._send(answer.status, dict(answer.headers), len(answer.body), [answer.body], faults)
            else:
                self._pass_on(body, faults)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _pass_on(self, body: bytes, faults: Iterable[Fault]) -> None:
        answer = self._ask(body)
        headers = {name: value for name, value in answer.getheaders() if name.lower() not in _OWN_HEADERS}
        if answer.length is None and self.command != "HEAD":
            content = answer.read()
            self._send(answer.status, headers, len(content), [content], faults)
            return
        size = int(answer.getheader("content-length", "0"))
        self._send(answer.status, headers, size, iter(lambda: answer.read(_PIECE), b""), faults)
        answer.read()  # what a fault has left, so that the connection can be used again

    def _ask(self, body: bytes) -> http.client.HTTPResponse:
        parts = urlsplit(self.path)
        target = self.path if not parts.scheme else parts._replace(scheme="", netloc="").geturl()
        for fresh in (False, True):
            if self._upstream is None or fresh:
                self._upstream = http.client.HTTPConnection(urlsplit(self.server.proxy.upstream).netloc, timeout=_TIMEOUT)
            try:
                self._upstream.putrequest(self.command, target, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    if name.lower() not in _OWN_HEADERS | {"expect"}:
                        self._upstream.putheader(name, value)
                self._upstream.putheader("Content-Length", str(len(body)))
                self._upstream.endheaders(body or None)
                return self._upstream.getresponse()
            except (http.client.RemoteDisconnected, ConnectionError):  # the emulator had closed a connection that was idle
                self._upstream.close()
                if fresh:
                    raise
        raise AssertionError("not reached")

    def _send(self, status: int, headers: dict[str, str], size: int, pieces: Iterable[bytes], faults: Iterable[Fault]) -> None:
        for fault in faults:
            for name, value in fault.headers.items():
                headers = {key: old for key, old in headers.items() if key.lower() != name.lower()}
                headers |= {name: value} if value else {}
        size = min((size, *(fault.truncate_to for fault in faults if fault.truncate_to is not None)))
        cut = min((fault.cut_after for fault in faults if fault.cut_after is not None), default=None)
        bodiless = self.command == "HEAD" or status in (204, 304)
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(size))
        self.end_headers()
        if not bodiless:
            self._write(pieces, size if cut is None else min(size, cut), damage=any(fault.damage for fault in faults))
        self.wfile.flush()
        if cut is not None:
            self.close_connection = True

    def _write(self, pieces: Iterable[bytes], limit: int, *, damage: bool) -> None:
        for number, piece in zip(itertools.count(), pieces, strict=False):
            sent = piece[:limit]
            if damage and number == 0 and sent:
                sent = bytes([sent[0] ^ 0xFF]) + sent[1:]
            self.wfile.write(sent)
            limit -= len(sent)
            if limit == 0:
                return
