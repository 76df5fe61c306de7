"""A store that serves a folder as a bucket: `folder_store.py FOLDER LATENCY`. It says its URL when it is ready.

It does of S3 what downloads need (lists, whole objects, ranges), each answer after LATENCY seconds, and costs next to nothing
itself: emulators read a whole object for each range. `/-/counts` tells what was asked since it was asked last.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

_PAGE = 1000


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    folder: Path
    latency: float
    counts: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/-/counts":
            with self.lock:
                told = json.dumps(self.counts).encode()
                self.counts.clear()
            return self.answer(told, "application/json")
        time.sleep(self.latency)
        key = unquote(parts.path).lstrip("/").partition("/")[2]
        self.count("get" if key else "list")
        return self.object(key) if key else self.answer(self.listing(parse_qs(parts.query)), "application/xml")

    def do_HEAD(self) -> None:
        time.sleep(self.latency)
        self.count("head")
        self.object(unquote(urlsplit(self.path).path).lstrip("/").partition("/")[2])

    def count(self, kind: str) -> None:
        with self.lock:
            self.counts[kind] += 1

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def listing(self, query: dict[str, list[str]]) -> bytes:
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        files = sorted((key, file) for key, file in self.files() if key.startswith(prefix) and key > after)
        entries = "".join(
            f"<Contents><Key>{escape(quote(key))}</Key><Size>{file.stat().st_size}</Size><ETag>&quot;{etag(file)}&quot;</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for key, file in files[:_PAGE]
        )
        more = len(files) > _PAGE
        next_one = f"<NextContinuationToken>{escape(files[_PAGE - 1][0])}</NextContinuationToken>" if more else ""
        head = f"<EncodingType>url</EncodingType><IsTruncated>{str(more).lower()}</IsTruncated>{next_one}"
        return f'<?xml version="1.0"?><ListBucketResult>{head}{entries}</ListBucketResult>'.encode()

    def files(self) -> Iterator[tuple[str, Path]]:
        for file in self.folder.rglob("*"):
            if file.is_file():
                yield file.relative_to(self.folder).as_posix(), file

    def object(self, key: str) -> None:
        file = self.folder / key
        if not file.is_file():
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        size = file.stat().st_size
        start, end = asked_range(self.headers.get("Range", ""), size)
        self.send_response(206 if "Range" in self.headers else 200)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("ETag", f'"{etag(file)}"')
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        self.wfile.flush()
        if self.command == "GET" and end > start:
            with file.open("rb") as content:
                self.connection.sendfile(content, start, end - start)
        return None


def etag(file: Path) -> str:
    """Of a form that is no MD5 sum, as for objects that were put in parts."""
    status = file.stat()
    return f"{status.st_size:x}{status.st_mtime_ns:x}-2"


def asked_range(header: str, size: int) -> tuple[int, int]:
    if not header:
        return 0, size
    start, _, end = header.removeprefix("bytes=").partition("-")
    return int(start), min(int(end) + 1 if end else size, size)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        return  # a client that has gone


def main() -> None:
    Handler.folder, Handler.latency = Path(sys.argv[1]), float(sys.argv[2])
    server = Server(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
