"""What requests to one model see while another takes long to load, over those without, beside Triton."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import define, field

from moorage_bench import control, load, requests
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.models import IDENTITY, SLOW, identity_repository, slow_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import Running, serving
from moorage_bench.sets.identity import COLUMNS, MOORAGE, TRITON
from moorage_bench.sets.reload import p99

_MEASURES = ("p99, load / none", "slowest, load / none")
_AIM = Aim(1.0, at_most=True)


@define
class _Side:
    """One server, with what each reading has found, by `_MEASURES`."""

    server: Running
    found: list[dict[str, float]] = field(factory=list)

    def read(self, seconds: float) -> float:
        """A while without a load, then as long while a load goes on; the ratio of the 99th percentiles."""
        request = requests.identity_binary(COLUMNS)
        quiet = sorted(load.latencies(self.server, request, seconds))
        with ThreadPoolExecutor(1) as other:
            loaded = other.submit(control.ask, self.server, SLOW, "load")
            busy = sorted(load.latencies(self.server, request, seconds))
            loaded.result()
        control.ask(self.server, SLOW, "unload")
        self.found.append(dict(zip(_MEASURES, (p99(busy) / p99(quiet), busy[-1] / quiet[-1]), strict=True)))
        return self.found[-1][_MEASURES[0]]


def measure(plan: Plan) -> list[Point]:
    """The load lasts as long as the requests are measured, and a little longer."""
    folders = {name: _repository(plan.folder("slow-load", name), plan.seconds) for name in (MOORAGE, TRITON)}
    specs = [
        control.explicit(plan.sides.moorage(folders[MOORAGE]), IDENTITY),
        control.explicit(plan.sides.triton(folders[TRITON]), IDENTITY),
    ]
    with serving(specs, plan.folder("logs")) as servers:
        readers = {name: _Side(server) for name, server in servers.items()}
        for server in servers.values():
            load.check(server, requests.identity_binary(COLUMNS))
        in_turn(plan, _MEASURES[0], {name: reader.read for name, reader in readers.items()})
    return [_point(readers, plan.rounds, title) for title in _MEASURES]


def _repository(root: Path, seconds: float) -> Path:
    return slow_repository(identity_repository(root), seconds + 0.5)


def _point(readers: dict[str, _Side], rounds: int, title: str) -> Point:
    values = {name: tuple(found[title] for found in reader.found[-rounds:]) for name, reader in readers.items()}
    return Point(title, "x", MOORAGE, TRITON, values, _AIM)
