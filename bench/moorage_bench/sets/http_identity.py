"""A Python model that returns its input, binary tensors over HTTP, beside Triton."""

from __future__ import annotations

from moorage_bench import load, requests
from moorage_bench.measure import Aim, Point
from moorage_bench.plan import Plan
from moorage_bench.servers import Running
from moorage_bench.sets.identity import COLUMNS, compare, identity_servers

_SMALL = ((1, Aim(1.5)), (16, Aim(1.2)))
"""Connections, and the aim over them."""
_LARGE_COLUMNS = 4 << 20
"""A tensor of 16 MiB."""
_LARGE_AIM = Aim(1.5)


def measure(plan: Plan) -> list[Point]:
    """64 bytes over 1 and 16 connections, 16 MiB over one."""
    tool = plan.tools.wrk()
    small = requests.identity_binary(COLUMNS)
    large = requests.identity_binary(_LARGE_COLUMNS)
    script = plan.folder("scripts") / "identity.lua"
    points: list[Point] = []
    with identity_servers(plan) as servers:
        for connections, aim in _SMALL:

            def read(server: Running, seconds: float, connections: int = connections) -> float:
                return load.wrk(tool, server, small, script, connections, seconds)

            points += compare(plan, servers, f"64 B, {connections} conn.", aim, read)
        for server in servers.values():
            load.check(server, large)
        points += compare(plan, servers, "16 MiB, 1 conn.", _LARGE_AIM, lambda s, t: load.one_connection(s, large, t))
    return points
