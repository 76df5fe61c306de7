"""Whether memory is given back: what a server holds after many loads and unloads of a model, beside what it held after ten."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from moorage_bench import control
from moorage_bench.install import MissingPeerError
from moorage_bench.measure import Aim, Point
from moorage_bench.models import LARGE, large_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import serving

_MEGABYTES = 50
_SETTLED = 10
"""Cycles until everything that is kept on purpose is there."""
_AIM = Aim(1.1, at_most=True)


def measure(plan: Plan) -> list[Point]:
    """Resident MiB with the C library's allocator and with others, preloaded, where they can be had."""
    repository = large_repository(plan.folder("large"), _MEGABYTES)
    points: list[Point] = []
    for name, environment in _environments(plan).items():
        spec = control.explicit(plan.sides.moorage(repository))
        with serving([evolve(spec, env={**spec.env, **environment})], plan.folder("logs")) as servers:
            (server,) = servers.values()
            held: dict[int, float] = {}
            for cycle in range(1, plan.cycles + 1):
                control.ask(server, LARGE, "load")
                control.ask(server, LARGE, "unload")
                if cycle in (_SETTLED, plan.cycles):
                    held[cycle] = control.resident_mib(server)
                    plan.progress(f"  {name}: {held[cycle]:.0f} MiB after {cycle} cycles")
        readings = {f"after {cycle}": (mib,) for cycle, mib in held.items()}
        title = f"{_MEGABYTES} MB ONNX, {name}"
        points.append(Point(title, "MiB", f"after {plan.cycles}", f"after {_SETTLED}", readings, _AIM))
    return points


def _environments(plan: Plan) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, Mapping[str, str]] = {"malloc": {}}
    try:
        found |= {name: {"LD_PRELOAD": str(library)} for name, library in plan.tools.allocators().items()}
    except MissingPeerError as error:
        plan.progress(f"  without other allocators: {error}")
    return found
