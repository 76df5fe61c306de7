"""A server as users run it, a process of its own, and what the tests ask of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from conformance.runner.ports import Ports, share
from conformance.suite import worker_number
from inputs.repository import Files, model, write

START_SECONDS = 60
_PORTS = Ports(share(worker_number()))
Entries = list[dict[str, str]]


@frozen
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The message of an answer that must be an error."""
        assert self.status >= 400, (self.status, self.body[:300])
        return str(self.json["error"])


@define
class LiveServer:
    """A running server. `model` and the like write into its first repository."""

    process: subprocess.Popen[bytes]
    repository: Path
    ports: tuple[int, ...]
    log_file: Path
    _connections: list[HTTPConnection] = field(factory=list)

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        """One HTTP request on a connection of its own. A body that is no bytes is sent as JSON; `_` in headers is a dash."""
        connection = HTTPConnection("127.0.0.1", self.ports[path == "/metrics" and 2], timeout=30)
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: object = None, **headers: str) -> Reply:
        return self.ask("POST", path, body, **headers)

    def infer(self, name: str, data: Sequence[object], datatype: str = "FP32", *, version: str = "", **more: Any) -> Reply:
        """Run a model that copies X to Y."""
        where = f"/v2/models/{name}" + (f"/versions/{version}" if version else "")
        return self.post(f"{where}/infer", request(data, datatype, **more))

    def output(self, name: str, data: Sequence[object] = (0,), *, version: str = "") -> list[Any]:
        """What a model that copies X to Y answers."""
        reply = self.infer(name, data, version=version)
        assert reply.status == 200, reply.body
        return list(reply.json["outputs"][0]["data"])

    def load(self, name: str, parameters: Mapping[str, object] | None = None, **headers: str) -> Reply:
        body = None if parameters is None else {"parameters": parameters}
        return self.post(f"/v2/repository/models/{name}/load", body, **headers)

    def unload(self, name: str, parameters: Mapping[str, object] | None = None) -> Reply:
        body = None if parameters is None else {"parameters": parameters}
        return self.post(f"/v2/repository/models/{name}/unload", body)

    def index(self, name: str = "") -> Entries:
        """The lines of the index, or those of one model."""
        entries: Entries = self.post("/v2/repository/index").json
        return [entry for entry in entries if not name or entry["name"] == name]

    def states(self, name: str) -> dict[str, str]:
        """Version to state, as the index tells it."""
        return {entry.get("version", ""): entry.get("state", "") for entry in self.index(name)}

    def reason(self, name: str) -> str:
        """Why a model is not available."""
        (entry,) = self.index(name)
        assert entry.get("state") == "UNAVAILABLE", entry
        return entry["reason"]

    def add(self, name: str, files: Files) -> None:
        """Write a model into the repository."""
        write(self.repository, model(name, files))

    @property
    def log(self) -> str:
        return self.log_file.read_text(errors="replace")

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def close(self) -> int:
        """End the server; its exit code."""
        if self.alive:
            self.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise


def ask(connection: HTTPConnection, method: str, path: str, body: object = None, **headers: str) -> Reply:
    """One request on a connection that may be used again."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(method, path, data, {name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return Reply(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())


def request(data: Sequence[object], datatype: str = "FP32", **more: Any) -> dict[str, object]:
    """The JSON of a request whose only input is X."""
    return {"inputs": [{"name": "X", "datatype": datatype, "shape": [len(data)], "data": list(data)}], **more}


def start(folder: Path, flags: Sequence[str], environment: Mapping[str, str] | None = None) -> LiveServer:
    """Start a server of `folder/repository` (unless the flags name others) and wait until it answers.

    Raises RuntimeError with what it wrote if it ends instead.
    """
    repository = write(folder / "repository", {})
    http, grpc, metrics = _PORTS.take()
    own = [] if any(flag.startswith("--model-repository") for flag in flags) else [f"--model-repository={repository}"]
    command = [str(Path(sys.executable).with_name("moorage")), "serve", *own, *flags]
    command += [f"--http-port={http}", f"--grpc-port={grpc}", f"--metrics-port={metrics}"]
    log_file = folder / "server.log"
    with log_file.open("wb") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **(environment or {})},
            cwd=folder,
        )
    server = LiveServer(process, repository, (http, grpc, metrics), log_file)
    _wait_until_live(server)
    return server


def _wait_until_live(server: LiveServer) -> None:
    limit = time.monotonic() + START_SECONDS
    while time.monotonic() < limit:
        if not server.alive:
            raise RuntimeError(server.log)
        try:
            if server.get("/v2/health/live").status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    server.process.kill()
    server.process.wait()
    raise RuntimeError(f"the server did not start in time:\n{server.log}")
