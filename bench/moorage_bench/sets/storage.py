"""Repositories in S3: how long a download takes and how much memory, and how often the store is asked for something."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from moorage_bench.inprocess import poller, starts
from moorage_bench.load import LoadError
from moorage_bench.measure import Aim, Point, Reading, in_turn
from moorage_bench.models import hollow, simple_models, small_and_large
from moorage_bench.plan import Plan
from moorage_bench.stores import ENVIRONMENT, Taken, download, serving_folder

_LATENCY_S = 0.02
_MODELS = 10
_POLLS = 10
_FASTER = Aim(0.5, at_most=True)
_FLAT = Aim(1.2, at_most=True)
_TWO_REQUESTS = Aim(2.0, at_most=True)
_NONE = Aim(0.0, at_most=True)


def measure(plan: Plan) -> list[Point]:
    """Downloads beside other clients; growth of memory with the size of a file; requests of polls and of a second start."""
    return [*_downloads(plan), _memory(plan), *_requests(plan)]


def _downloads(plan: Plan) -> list[Point]:
    clients = {"moorage": Path(sys.executable), **plan.tools.s3_clients()}
    title = f"50 small files + {plan.megabytes} MiB"
    taken: dict[str, list[Taken]] = {name: [] for name in clients}
    with serving_folder(small_and_large(plan.workspace, plan.megabytes), _LATENCY_S) as store:

        def reading(client: str, python: Path) -> Reading:
            def read(_seconds: float) -> float:
                taken[client].append(download(client, python, store, plan.workspace / "downloaded"))
                return taken[client][-1].seconds

            return read

        seconds = in_turn(plan, title, {name: reading(name, python) for name, python in clients.items()})
    cpu = {name: tuple(one.cpu for one in ones[1:]) for name, ones in taken.items()}  # the first was the warm-up
    others = [name for name in clients if name != "moorage"]
    return [
        *(Point(title, "s", "moorage", name, seconds, _FASTER if name == "aws" else None) for name in others),
        *(Point(f"{title}, CPU", "s", "moorage", name, cpu) for name in others),
    ]


def _memory(plan: Plan) -> Point:
    grown: dict[str, tuple[float, ...]] = {}
    for megabytes in (plan.megabytes, 10 * plan.megabytes):
        with serving_folder(hollow(plan.workspace, megabytes), 0.0) as store:
            taken = download("moorage", Path(sys.executable), store, plan.workspace / "downloaded")
            grown[f"{megabytes} MiB"] = (taken.mib,)
    plan.progress(f"  memory: {grown}")
    small, large = grown
    return Point("memory for a download", "MiB", large, small, grown, _FLAT)


def _requests(plan: Plan) -> list[Point]:
    cache = plan.workspace / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    with serving_folder(simple_models(plan.workspace, _MODELS), 0.0) as store, _environment():
        poll = poller(store.url)
        store.asked()
        for _ in range(_POLLS):
            poll()
        asked = sum(store.asked().values())
        start = starts(store.url, cache)
        objects: list[float] = []
        for _ in range(2):
            if start() != _MODELS:
                raise LoadError("not all models of the store are ready")
            objects.append(store.asked().get("get", 0))
    polls = {"requests": (float(asked),), "polls": (float(_POLLS),)}
    gets = {"second start": (objects[1],), "first start": (objects[0],)}
    plan.progress(f"  requests: {polls}, objects read: {gets}")
    return [
        Point(f"requests a poll, {_MODELS} models", "", "requests", "polls", polls, _TWO_REQUESTS),
        Point(f"objects read, {_MODELS} models", "", "second start", "first start", gets, _NONE),
    ]


@contextmanager
def _environment() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in ENVIRONMENT}
    os.environ.update(ENVIRONMENT)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
