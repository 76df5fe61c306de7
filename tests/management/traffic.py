"""Clients that keep asking a model while something happens to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Final

import numpy as np
import tritonclient.grpc as triton
from attrs import define, field

from inputs.live import LiveServer, ask, request

Ask = Callable[[], float]
"""One request: the number that the model answers with. Raises if it was not answered well."""


@define
class Call:
    """One request that was answered."""

    began: float
    ended: float
    answer: float
    what: str


@define
class Traffic:
    """What the clients have seen."""

    calls: list[Call] = field(factory=list)
    failures: list[str] = field(factory=list)


@contextmanager
def http_client(server: LiveServer, model: str, version: str) -> Iterator[Ask]:
    """Requests over one kept-alive connection."""
    connection: Final = HTTPConnection("127.0.0.1", server.ports[0], timeout=30)
    path = f"/v2/models/{model}" + (f"/versions/{version}" if version else "") + "/infer"
    connection.connect()
    socket = connection.sock

    def asked() -> float:
        reply = ask(connection, "POST", path, request([0.0]))
        assert reply.status == 200, reply.body
        assert connection.sock is socket, "the server has closed the connection"
        return float(reply.json["outputs"][0]["data"][0])

    yield asked
    connection.close()


@contextmanager
def grpc_client(server: LiveServer, model: str, version: str) -> Iterator[Ask]:
    """Requests over one channel."""
    with triton.InferenceServerClient(f"127.0.0.1:{server.ports[1]}") as client:

        def asked() -> float:
            tensor = triton.InferInput("X", [1], "FP32")
            tensor.set_data_from_numpy(np.zeros(1, np.float32))
            answer = client.infer(model, [tensor], model_version=version, client_timeout=30)
            return float(answer.as_numpy("Y")[0])

        yield asked


@contextmanager
def hammered(server: LiveServer, model: str, clients: int, *, pinned: str = "") -> Iterator[Traffic]:
    """So many clients of each protocol ask without a break; every second one asks for the version `pinned`."""
    traffic, stop = Traffic(), threading.Event()

    def run(number: int) -> None:
        version = pinned if number % 4 >= 2 else ""
        kind = (http_client, grpc_client)[number % 2]
        what = f"{kind.__name__} {number}, version {version or 'latest'}"
        with kind(server, model, version) as asked:
            while not stop.is_set():
                began = time.monotonic()
                try:
                    answer = asked()
                except Exception as error:  # whatever it is, it is what the test is about
                    traffic.failures.append(f"{what}: {type(error).__name__}: {error}")
                    stop.wait(0.1)
                else:
                    traffic.calls.append(Call(began, time.monotonic(), answer, what))

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2 * clients)]
    for thread in threads:
        thread.start()
    try:
        yield traffic
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
