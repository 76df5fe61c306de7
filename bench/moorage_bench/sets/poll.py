"""How long a poll of a large local repository takes in which nothing has changed, beside a bare `os.walk` over it."""

from __future__ import annotations

from moorage_bench.inprocess import poller
from moorage_bench.load import LoadError
from moorage_bench.measure import Aim, Point, in_turn
from moorage_bench.models import many_models
from moorage_bench.plan import Plan
from moorage_bench.sets.scan import timed, walk

_AIM = Aim(4.0, at_most=True)


def measure(plan: Plan) -> list[Point]:
    """Seconds for one poll of all models, each with a configuration and one version of one file."""
    repository = many_models(plan.workspace, plan.models)
    poll = poller(repository)
    found = poll()
    if found != plan.models:
        raise LoadError(f"moorage found {found} models where there are {plan.models}")
    title = f"{plan.models} unchanged models"
    sides = {"moorage": timed(poll), "os.walk": timed(lambda: walk(repository))}
    return [Point(title, "s", "moorage", "os.walk", in_turn(plan, title, sides), _AIM)]
