"""What requests see of reloads: 99th percentile and slowest while a model is replaced, over those without, beside Triton."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import define, field

from moorage_bench import control, load, requests
from moorage_bench.load import LoadError
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.models import IDENTITY, identity_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import Running, serving
from moorage_bench.sets.identity import COLUMNS, MOORAGE, TRITON

_PAUSE_S = 0.2
"""Between the end of a reload and the next."""
_AIM = Aim(1.0, at_most=True)
_MEASURES = ("p99, reloads / none", "slowest, reloads / none", "p99, reloads", "slowest, reloads")


@define
class _Side:
    """One server, with what each reading has found, by `_MEASURES`."""

    server: Running
    repository: Path
    found: list[dict[str, float]] = field(factory=list)
    _reloads: int = 0

    def read(self, seconds: float) -> float:
        """A while without reloads, then as long with them; the ratio of the 99th percentiles."""
        request = requests.identity_binary(COLUMNS)
        quiet = sorted(load.latencies(self.server, request, seconds))
        with self._reloading():
            busy = sorted(load.latencies(self.server, request, seconds))
        values = (p99(busy) / p99(quiet), busy[-1] / quiet[-1], p99(busy) * 1e3, busy[-1] * 1e3)
        self.found.append(dict(zip(_MEASURES, values, strict=True)))
        return values[0]

    @contextmanager
    def _reloading(self) -> Iterator[None]:
        stop, failed = threading.Event(), list[LoadError]()

        def run() -> None:
            try:
                self._reload()
                while not stop.wait(_PAUSE_S):
                    self._reload()
            except LoadError as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
        if failed:
            raise failed[0]

    def _reload(self) -> None:
        self._reloads += 1
        identity_repository(self.repository, {"reload": str(self._reloads)})
        control.ask(self.server, IDENTITY, "load")


def measure(plan: Plan) -> list[Point]:
    """Ratios first, which are what counts; then the milliseconds themselves."""
    repositories = {name: identity_repository(plan.folder("reload", name)) for name in (MOORAGE, TRITON)}
    specs = [
        control.explicit(plan.sides.moorage(repositories[MOORAGE]), IDENTITY),
        control.explicit(plan.sides.triton(repositories[TRITON]), IDENTITY),
    ]
    with serving(specs, plan.folder("logs")) as servers:
        readers = {name: _Side(server, repositories[name]) for name, server in servers.items()}
        for server in servers.values():
            load.check(server, requests.identity_binary(COLUMNS))
        in_turn(plan, _MEASURES[0], {name: reader.read for name, reader in readers.items()})
    return [_point(readers, plan.rounds, title) for title in _MEASURES]


def _point(readers: dict[str, _Side], rounds: int, title: str) -> Point:
    values = {name: tuple(found[title] for found in reader.found[-rounds:]) for name, reader in readers.items()}
    ratio = title.endswith("none")
    return Point(title, "x" if ratio else "ms", MOORAGE, TRITON, values, _AIM if ratio else None)


def p99(ordered: list[float]) -> float:
    """The 99th percentile of values that are in order."""
    return ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
