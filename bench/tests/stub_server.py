"""Answers as a server of the v2 protocol would, just enough for the load generators: `stub_server.py PORT [--wrong]`."""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wrong = False
    loads = True

    answered = 0

    def do_GET(self) -> None:
        stats = {"model_stats": [{"inference_stats": {"success": {"count": Handler.answered}}}]}
        self._answer(json.dumps(stats).encode())

    def do_POST(self) -> None:
        if self.path.startswith("/v2/repository/") and not self.loads:
            self.send_error(400)
            return
        Handler.answered += 1
        body = self.rfile.read(int(self.headers["Content-Length"]))
        head = int(self.headers.get("Inference-Header-Content-Length", "0"))
        self._answer(b"oops" if self.wrong else body[head:] if head else b'{"outputs":[{"name":"OUTPUT1"}]}')

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class has
        """Say nothing."""


if __name__ == "__main__":
    Handler.wrong = "--wrong" in sys.argv
    Handler.loads = "--no-loads" not in sys.argv
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
