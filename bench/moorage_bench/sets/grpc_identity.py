"""The same Python model over gRPC, loaded by Triton's perf_analyzer."""

from __future__ import annotations

from moorage_bench import load
from moorage_bench.measure import Aim, Point
from moorage_bench.models import IDENTITY
from moorage_bench.plan import Plan
from moorage_bench.servers import Running
from moorage_bench.sets.identity import COLUMNS, compare, identity_servers

_CONCURRENCY = (1, 16)
_AIM = Aim(0.7)


def measure(plan: Plan) -> list[Point]:
    """64 bytes, 1 and 16 requests at a time."""
    tool = plan.tools.perf_analyzer()
    points: list[Point] = []
    with identity_servers(plan) as servers:
        for concurrency in _CONCURRENCY:

            def read(server: Running, seconds: float, concurrency: int = concurrency) -> float:
                return load.perf_analyzer(tool, server, IDENTITY, COLUMNS, concurrency, seconds)

            points += compare(plan, servers, f"64 B, {concurrency} at a time", _AIM, read)
    return points
