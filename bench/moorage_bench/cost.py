"""What a request costs a server in processor time: a number that other work on the machine disturbs much less than a rate."""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from attrs import define, field

from moorage_bench.load import LoadError
from moorage_bench.servers import Running


@define
class Cost:
    """Processor microseconds a request of one model, child processes included, for each reading made through it."""

    server: Running
    model: str
    microseconds: list[float] = field(factory=list)

    def metered(self, read: Callable[[Running, float], float]) -> Callable[[float], float]:
        """The reading, with its cost noted."""

        def metered(seconds: float) -> float:
            before, start = answered(self.server, self.model), processor_seconds(self.server.pid)
            value = read(self.server, seconds)
            spent, count = processor_seconds(self.server.pid) - start, answered(self.server, self.model) - before
            self.microseconds.append(spent / max(count, 1) * 1e6)
            return value

        return metered


def answered(server: Running, model: str) -> int:
    """How many requests the model has answered, by the server's own statistics."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports.http, timeout=10)
    with closing(connection):
        connection.request("GET", f"/v2/models/{model}/stats")
        response = connection.getresponse()
        body = response.read()
    if response.status != http.HTTPStatus.OK:
        raise LoadError(f"{server.name}: statistics of '{model}' answer {response.status}")
    return sum(int(version["inference_stats"]["success"]["count"]) for version in json.loads(body)["model_stats"])


def processor_seconds(session: int) -> float:
    """Processor time of all living threads of a session's processes, in user and system mode, as the scheduler counts it."""
    spent_ns = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(process.name)) == session:
                spent_ns += sum(_thread_ns(thread) for thread in process.glob("task/*"))
        except ProcessLookupError:  # it has ended meanwhile
            continue
    return spent_ns / 1e9


def _thread_ns(thread: Path) -> int:
    try:
        return int((thread / "schedstat").read_text().split()[0])
    except OSError:
        return 0
