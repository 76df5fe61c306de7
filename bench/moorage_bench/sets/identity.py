"""What the two identity sets share: the servers, and one point for each pair of sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from attrs import evolve

from moorage_bench import load, requests
from moorage_bench.cost import Cost
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.models import IDENTITY, identity_repository
from moorage_bench.plan import Plan
from moorage_bench.servers import Running, serving

COLUMNS = 16
"""A tensor of 64 bytes."""
MOORAGE, THREAD, TRITON = "moorage", "moorage-thread", "triton"


@contextmanager
def identity_servers(plan: Plan) -> Iterator[Mapping[str, Running]]:
    """moorage and Triton with the same Python model, started at once and seen to answer rightly."""
    repository = identity_repository(plan.folder("identity"))
    specs = [plan.sides.moorage(repository), plan.sides.triton(repository)]
    if plan.with_thread:
        threaded = identity_repository(plan.folder("identity-thread"), {"isolation": "thread"})
        specs.insert(1, evolve(plan.sides.moorage(threaded), name=THREAD))
    with serving(specs, plan.folder("logs")) as servers:
        for server in servers.values():
            load.check(server, requests.identity_binary(COLUMNS))
        yield servers


def compare(
    plan: Plan, servers: Mapping[str, Running], title: str, aim: Aim, read: Callable[[Running, float], float]
) -> list[Point]:
    """Every server in turn; the ratio of each to Triton, in requests per second and in processor time a request."""
    costs = {name: Cost(server, IDENTITY) for name, server in servers.items()}
    rates = in_turn(plan, title, {name: cost.metered(read) for name, cost in costs.items()})
    spent = {name: tuple(cost.microseconds[-plan.rounds :]) for name, cost in costs.items()}
    points: list[Point] = []
    for name in servers:
        if name != TRITON:
            points.append(Point(title, "requests/s", name, TRITON, rates, aim if name == MOORAGE else None))
            if all(all(values) for values in spent.values()):  # else this system does not count it
                points.append(Point(f"{title}, CPU", "us/request", name, TRITON, spent))
    return points
