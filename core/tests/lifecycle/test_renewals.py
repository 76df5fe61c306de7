"""Models that change in their instance groups alone: what serves is continued, not loaded anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moorage.control import ModelId

if TYPE_CHECKING:
    from core.tests.lifecycle.conftest import Stage

M = ModelId("m")


def test_a_version_is_continued_and_relieved_at_the_swap(stage: Stage) -> None:
    stage.have("m", {1: "a#1"})
    task = stage.want("m", {1: "a#2"})
    assert stage.lines() == ["m/1 READY"]
    stage.finish()
    old, new = stage.loaded
    assert new.continues is old
    assert new.relieved
    assert stage.serving.get("m") is new
    stage.finish("unload")
    assert (old.closed, new.closed) == (1, 0)
    assert task.result().changed


def test_nothing_is_relieved_before_the_whole_set_is_loaded(stage: Stage) -> None:
    stage.have("m", {1: "a#1"})
    task = stage.want("m", {1: "a#2", 2: "b"})
    stage.finish()
    stage.finish()
    assert task.result().error is None
    renewed = [servable for servable in stage.loaded if servable.continues]
    assert [servable.relieved for servable in renewed] == [True]
    assert stage.serving.swaps[-1] == (M, {1: "a#2", 2: "b"})


def test_a_set_that_fails_gives_the_continued_version_up(stage: Stage) -> None:
    stage.broken.add("b")
    stage.have("m", {1: "a#1"})
    task = stage.want("m", {1: "a#2", 2: "b"})
    stage.finish_all()
    assert task.result().error is not None
    for servable in stage.loaded:
        assert (servable.relieved, servable.closed) == (False, int(servable.continues is not None))
    assert stage.serving.get("m") is stage.loaded[0]


def test_instances_that_cannot_be_made_leave_what_serves(stage: Stage) -> None:
    stage.have("m", {1: "a#1"})
    stage.broken.add("a#2")
    task = stage.want("m", {1: "a#2"})
    stage.finish_all()
    assert task.result().error is not None
    assert stage.lines() == ["m/1 READY"]
    assert stage.have("m", {1: "a#1"}).changed is False


def test_a_version_that_is_released_meanwhile_is_not_continued(stage: Stage) -> None:
    stage.have("m", {1: "a#1"})
    task = stage.want("m", {1: "a#2"})
    release = stage.start(stage.manager.release(M))
    stage.finish_all()
    assert release.done()
    assert task.result().error is not None
    assert not any(servable.relieved for servable in stage.loaded)
    assert all(servable.closed == 1 for servable in stage.loaded)
    assert stage.served("m") == {}


def test_one_change_follows_another(stage: Stage) -> None:
    stage.have("m", {1: "a#1"})
    stage.want("m", {1: "a#2"})
    task = stage.want("m", {1: "a#3"})
    stage.finish_all()
    assert task.result().error is None
    last = stage.serving.get("m")
    assert last.spec.fingerprint == "a#3"
    assert last.continues is stage.loaded[0]
    assert [servable.closed for servable in stage.loaded if servable is not last] == [1] * (len(stage.loaded) - 1)


def test_a_version_that_is_leaving_is_not_continued_by_a_retry(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(retries=1)
    stage.have("m", {1: "a#1"})
    handle = stage.acquire("m")
    stage.broken.add("a#2")
    stage.want("m", {1: "a#2"})
    stage.pools["load"].begin()
    stage.release("m")
    task = stage.want("m", {1: "a#2"})
    stage.finish()
    stage.broken.clear()
    stage.finish()
    assert task.result().error is None
    assert stage.serving.get("m").continues is None
    stage.let_go(handle)
    stage.finish_all()
    assert [servable.closed for servable in stage.loaded] == [1, 0]
