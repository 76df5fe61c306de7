"""A small ONNX model over HTTP, all in JSON, beside MLServer."""

from __future__ import annotations

from moorage_bench import load, requests
from moorage_bench.measure import Aim, Point, in_turn, reading_each
from moorage_bench.models import mlserver_repository, simple_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import Running, serving

_CONNECTIONS = 16
_AIM = Aim(12.0)


def measure(plan: Plan) -> list[Point]:
    """Two INT32 [1, 16] inputs over 16 connections."""
    tool = plan.tools.wrk()
    request = requests.simple_json()
    script = plan.folder("scripts") / "simple.lua"
    specs = [
        plan.sides.moorage(simple_repository(plan.folder("simple"))),
        plan.sides.mlserver(mlserver_repository(plan.folder("simple-mlserver"))),
    ]

    def read(server: Running, seconds: float) -> float:
        return load.wrk(tool, server, request, script, _CONNECTIONS, seconds)

    title = f"simple, {_CONNECTIONS} conn."
    with serving(specs, plan.folder("logs")) as servers:
        for server in servers.values():
            load.check(server, request)
        readings = in_turn(plan, title, reading_each(servers, read))
    return [Point(title, "requests/s", "moorage", "mlserver", readings, _AIM)]
