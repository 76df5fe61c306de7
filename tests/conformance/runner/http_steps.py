"""Steps over HTTP."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import zlib
from typing import Any

from conformance.runner import metrics, tensors
from conformance.runner.case import Seen, Step
from conformance.runner.session import Session

Headers = dict[str, str]


def request(session: Session, step: Step) -> Seen:
    """Send one request; the status and what the step asks of the answer."""
    try:
        answer, raw = _exchange(session, step)
    except ConnectionRefusedError:
        return {"connection": "refused"}
    except (OSError, http.client.HTTPException):
        return {"connection": "failed"}
    seen: Seen = {"status": answer.status}
    shown = {key.lower(): answer.getheader(key, "") for key in step.get("check_headers", [])}
    if shown:
        seen["headers"] = shown
    coding = answer.getheader("Content-Encoding", "")
    if step.get("accept_encoding"):
        seen["content_encoding"] = coding
    return seen | _body(step, answer, _decompressed(coding, raw))


def _exchange(session: Session, step: Step) -> tuple[http.client.HTTPResponse, bytes]:
    method, path = step["http"].split(" ", 1)
    body, headers = _encoded(step)
    connection = _connection(session, step)
    try:
        _send(connection, step, method, path, body, headers)
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        if not step.get("conn"):
            connection.close()


def _send(connection: http.client.HTTPConnection, step: Step, method: str, path: str, body: bytes, headers: Headers) -> None:
    if step.get("chunked"):
        size = 16 if isinstance(step["chunked"], bool) else max(1, int(step["chunked"]))
        pieces = (body[i : i + size] for i in range(0, len(body), size))
        connection.request(method, path, body=pieces, headers=headers, encode_chunked=True)
    else:
        connection.putrequest(method, path, skip_accept_encoding=True)
        for key, value in headers.items():
            connection.putheader(key, value)
        if (body or method in {"POST", "PUT"}) and "Content-Length" not in headers:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body or None)


def _connection(session: Session, step: Step) -> http.client.HTTPConnection:
    """A fresh connection, or the one kept under the step's name."""
    name = step.get("conn")
    if name in session.connections:
        return session.connections[name]
    port = {"http": session.http_port, "metrics": session.metrics_port, "grpc": session.grpc_port}[step.get("port", "http")]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=step.get("timeout", 30))
    connection.connect()
    connection.auto_open = 0  # a closed connection must show
    if name:
        session.connections[name] = connection
    return connection


def _encoded(step: Step) -> tuple[bytes, Headers]:
    body, headers = _plain(step)
    if step.get("compress") == "gzip":
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    elif step.get("compress") == "deflate":
        body, headers["Content-Encoding"] = zlib.compress(body), "deflate"
    if step.get("accept_encoding"):
        headers["Accept-Encoding"] = step["accept_encoding"]
    return body, headers | {key: str(value) for key, value in step.get("headers", {}).items()}


def _plain(step: Step) -> tuple[bytes, Headers]:
    if "infer" in step:
        return _inference(step)
    if "json" in step:
        return json.dumps(step["json"]).encode(), {"Content-Type": "application/json"}
    if "text" in step:
        return step["text"].encode(), {}
    return b"".join(tensors.encode(one["datatype"], one["data"]) for one in step.get("tensors", [])), {}


def _inference(step: Step) -> tuple[bytes, Headers]:
    spec = json.loads(json.dumps(step["infer"]))
    tail = b"".join(_detach(tensor) for tensor in spec.get("inputs", []))
    for output in spec.get("outputs", []):
        for key, name in (("binary", "binary_data"), ("classification", "classification")):
            if key in output:
                output.setdefault("parameters", {})[name] = output.pop(key)
    head = json.dumps(spec).encode()
    if not tail and not step.get("header_length"):
        return head, {"Content-Type": "application/json"}
    length = str(step.get("header_length", len(head)))
    return head + tail, {"Inference-Header-Content-Length": length, "Content-Type": "application/octet-stream"}


def _detach(tensor: dict[str, Any]) -> bytes:
    """Take a binary input's data out of the JSON."""
    if not tensor.pop("binary", False):
        return b""
    raw = tensors.encode(tensor["datatype"], tensor.pop("data"))
    raw = raw[: len(raw) - tensor.pop("cut", 0)]
    tensor.setdefault("parameters", {}).setdefault("binary_data_size", len(raw))
    return raw


def _decompressed(coding: str, raw: bytes) -> bytes:
    if coding == "gzip":
        return gzip.decompress(raw)
    return zlib.decompress(raw) if coding == "deflate" else raw


def _body(step: Step, answer: http.client.HTTPResponse, raw: bytes) -> Seen:
    if step.get("body") == "sse":
        return _events(raw)
    if step.get("body") == "metrics":
        wanted, values = step.get("families", ["nv_inference_*"]), step.get("values", [])
        shown = metrics.families(raw.decode(), wanted, label_values=step.get("label_values", False), values=values)
        return {"metrics": shown}
    split = answer.getheader("Inference-Header-Content-Length")
    if split is not None:
        return _with_binary_outputs(raw, int(split))
    if not raw:
        return {"body": "empty"}
    try:
        return {"json": json.loads(raw)}
    except ValueError:
        return {"body": tensors.as_text(raw) if step.get("keep_text") else "<text>"}


def _events(raw: bytes) -> Seen:
    data = [line[5:].strip() for line in raw.decode().splitlines() if line.startswith("data:")]
    seen: Seen = {"events": [json.loads(one) if one.startswith("{") else one for one in data]}
    if not data and raw.startswith(b"{"):
        seen["json"] = json.loads(raw)
    return seen


def _with_binary_outputs(raw: bytes, at: int) -> Seen:
    head = json.loads(raw[:at])
    for output in head.get("outputs", []):
        size = output.get("parameters", {}).get("binary_data_size")
        if size is not None:
            output["data"] = tensors.decode(output["datatype"], raw[at : at + size])
            at += size
    return {"json": head} | ({"stray_bytes": len(raw) - at} if at != len(raw) else {})


def raw_bytes(session: Session, step: Step) -> Seen:
    """Bytes as they are; observed are the status codes of the answers."""
    data = step["raw"].replace("\r\n", "\n").replace("\n", "\r\n").encode()
    got = b""
    with socket.create_connection(("127.0.0.1", session.http_port), timeout=5) as link:
        link.sendall(data)
        link.settimeout(step.get("timeout", 2))
        try:
            while piece := link.recv(65536):
                got += piece
        except OSError:
            pass
    return {"statuses": [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3})", got)]}


KINDS = {"http": request, "raw": raw_bytes}
