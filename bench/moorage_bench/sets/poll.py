"""How long a poll of a large local repository takes in which nothing has changed, beside a bare `os.walk` over it."""

from __future__ import annotations

from moorage_bench.inprocess import poller
from moorage_bench.measure import Point
from moorage_bench.plan import Plan
from moorage_bench.sets.scan import beside_walk


def measure(plan: Plan) -> list[Point]:
    """Seconds for one poll of all models, each with a configuration and one version of one file."""
    return beside_walk(plan, poller, "unchanged models")
