"""HTTP requests of the v2 protocol as bytes, for any load generator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import frozen

from moorage_bench.models import IDENTITY, SIMPLE, add_sub_inputs


@frozen
class HttpRequest:
    """A POST. `expect` are bytes that the answer's body must hold, so that no error page is ever measured."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    expect: bytes

    def raw(self, host: str) -> bytes:
        """The head of the request on the wire, the body left out."""
        lines = [f"POST {self.path} HTTP/1.1", f"Host: {host}", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def write_lua(self, path: Path) -> Path:
        """Write the script that makes wrk send this request."""
        lines = ['wrk.method = "POST"', f'wrk.body = "{_lua_text(self.body)}"']
        lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in self.headers.items()]
        path.write_text("\n".join(lines) + "\n")
        return path


def identity_binary(columns: int) -> HttpRequest:
    """The identity model, one FP32 [1, columns] tensor, binary both ways."""
    tensor = np.linspace(0.0, 1.0, columns, dtype=np.float32).tobytes()
    shape = [1, columns]
    given = {"name": "INPUT0", "shape": shape, "datatype": "FP32", "parameters": {"binary_data_size": len(tensor)}}
    head = json.dumps({"inputs": [given], "outputs": [{"name": "OUTPUT0", "parameters": {"binary_data": True}}]}).encode()
    headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(head))}
    return HttpRequest(f"/v2/models/{IDENTITY}/infer", headers, head + tensor, tensor)


def simple_json(columns: int = 16) -> HttpRequest:
    """The ONNX model `simple`, all in JSON."""
    tensors = add_sub_inputs(columns)
    inputs = [
        {"name": name, "shape": list(array.shape), "datatype": "INT32", "data": array.ravel().tolist()}
        for name, array in tensors.items()
    ]
    body = json.dumps({"inputs": inputs}, separators=(",", ":")).encode()
    return HttpRequest(f"/v2/models/{SIMPLE}/infer", {"Content-Type": "application/json"}, body, b'"OUTPUT1"')


def _lua_text(data: bytes) -> str:
    return "".join(chr(byte) if _printable(byte) else f"\\{byte:03d}" for byte in data)


def _printable(byte: int) -> bool:
    return 32 <= byte < 127 and byte not in b'"\\'
