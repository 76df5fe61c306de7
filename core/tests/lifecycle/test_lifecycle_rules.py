"""The rules of the lifecycle under random wants, failures, releases and requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from moorage._lifecycle import Handle
from moorage.control import ModelId, Outcome
from moorage.errors import MoorageError

if TYPE_CHECKING:
    from core.tests.lifecycle.conftest import FakeServable, Stage

NEEDS: dict[str, tuple[str, ...]] = {"part": (), "lone": (), "user": ("part",), "top": ("user", "lone")}
NAMES = st.sampled_from(sorted(NEEDS))
SETS = st.dictionaries(st.integers(1, 3), st.sampled_from(["a", "b", "bad"]), min_size=1, max_size=2)


class Lifecycle(RuleBasedStateMachine):
    """Four models that build on each other; loads and unloads end when a rule says so."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self.stage = stage
        self.stage.broken = {"bad"}
        self.wants: list[tuple[str, asyncio.Task[Outcome]]] = []
        self.releases: list[asyncio.Task[Outcome]] = []
        self.sets: dict[str, list[dict[int, str]]] = {name: [] for name in NEEDS}
        self.handles: list[Handle[FakeServable]] = []
        self.released: dict[str, int] = dict.fromkeys(NEEDS, 0)
        """How often a model had come up when it or a part of it was released last."""

    @property
    def safe(self) -> set[str]:
        """Models that came up, and neither they nor their parts were released since."""
        return {name for name in NEEDS if self.ups(name) > self.released[name]}

    def ups(self, name: str) -> int:
        return sum(model_id.name == name for model_id, _ in self.stage.serving.swaps)

    @rule(name=NAMES, versions=SETS, force=st.booleans())
    def want(self, name: str, versions: dict[int, str], force: bool) -> None:
        self.sets[name].append(versions)
        self.wants.append((name, self.stage.want(name, versions, *NEEDS[name], force=force)))

    @rule(data=st.data())
    @precondition(lambda self: any(not task.done() for _, task in self.wants))
    def an_awaiter_gives_up(self, data: st.DataObject) -> None:
        name, task = data.draw(st.sampled_from([entry for entry in self.wants if not entry[1].done()]))
        task.cancel()
        self.wants.remove((name, task))
        self.stage.tick()

    @rule(pool=st.sampled_from(["load", "unload"]), data=st.data())
    def finish(self, pool: str, data: st.DataObject) -> None:
        waiting = self.stage.pools[pool].waiting
        if waiting:
            self.stage.finish(pool, data.draw(st.integers(0, len(waiting) - 1)))

    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        pool = self.stage.pools["load"]
        if pool.waiting:
            pool.begin(data.draw(st.integers(0, len(pool.waiting) - 1)))

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        for affected in _affected(name):
            self.released[affected] = self.ups(affected)
        self.releases.append(self.stage.release(name))

    @rule(name=NAMES)
    def acquire(self, name: str) -> None:
        try:
            self.handles.append(self.stage.acquire(name))
        except MoorageError:
            assert name not in self.safe

    @rule(data=st.data())
    @precondition(lambda self: bool(self.handles))
    def let_go(self, data: st.DataObject) -> None:
        self.stage.let_go(self.handles.pop(data.draw(st.integers(0, len(self.handles) - 1))))

    @invariant()
    def no_availability_is_lost(self) -> None:
        for name in self.safe:
            assert self.stage.reachable(name), f"{name} stopped serving"

    @invariant()
    def whole_sets_serve(self) -> None:
        for name in NEEDS:
            served = self.stage.served(name)
            assert not served or served in self.sets[name], f"{name} serves {served}, which nobody wanted"
            assert "bad" not in served.values()

    @invariant()
    def swaps_are_not_more_than_rollouts(self) -> None:
        swaps = Counter(model_id.name for model_id, _ in self.stage.serving.swaps)
        for model in self.stage.manager._models:
            assert swaps[model.id.name] <= model.generation

    @invariant()
    def what_is_held_is_open(self) -> None:
        assert all(not handle.servable.closed for handle in self.handles)
        assert all(servable.closed <= 1 for servable in self.stage.loaded)

    @invariant()
    def the_index_tells_the_truth(self) -> None:
        for line in self.stage.manager.index():
            serves = line.version in self.stage.served(line.id.name)
            assert (line.state == "READY") is serves
            assert line.reason or line.state != "UNAVAILABLE"
        assert not {failed.name for failed in self.stage.manager.failed()} & {n for n in NEEDS if self.stage.served(n)}

    def teardown(self) -> None:
        stage = self.stage
        for handle in self.handles:
            stage.let_go(handle)
        stage.finish_all()
        assert all(task.done() for _, task in self.wants), "a want was never answered"
        assert all(task.done() for task in self.releases), "a release was never answered"
        for name, task in self.wants[-1:]:
            self.the_last_want_counts(name, task.result())
        closing = stage.start(stage.manager.close(60))
        stage.finish_all()
        assert closing.result() is True
        assert all(servable.closed == 1 for servable in stage.loaded)
        assert all(line.state == "UNAVAILABLE" for line in stage.manager.index())
        stage.loop.close()

    def the_last_want_counts(self, name: str, outcome: Outcome) -> None:
        if outcome.error is None and not self.releases:
            assert self.stage.served(name) == self.sets[name][-1]
            assert self.stage.manager.failure(ModelId(name)) is None


def _affected(name: str) -> set[str]:
    """The model and all that use it."""
    users = {user for user, parts in NEEDS.items() if name in parts}
    return {name}.union(*(_affected(user) for user in users))


def test_the_rules_hold(make_stage: Callable[..., Stage]) -> None:
    class Staged(Lifecycle):
        def __init__(self) -> None:
            super().__init__(make_stage())

    checks = [HealthCheck.too_slow]
    run_state_machine_as_test(
        Staged, settings=settings(max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=checks)
    )
