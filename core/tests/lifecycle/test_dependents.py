"""Models that use other models: the order of loads and unloads, and what a missing or failing step does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from moorage.control import ModelId, Outcome
from moorage.errors import Code, ErrorRecord

if TYPE_CHECKING:
    from core.tests.lifecycle.conftest import Stage


def together(stage: Stage, *models: tuple[str, ...]) -> asyncio.Task[Any]:
    """Want models, each given as its name, its fingerprint and the names it needs."""
    return stage.start(stage.manager.want_all([stage.spec(name, {1: mark}, tuple(needs)) for name, mark, *needs in models]))


def test_a_dependent_waits_for_its_parts_in_any_order(stage: Stage) -> None:
    task = together(stage, ("top", "t", "mid"), ("mid", "m", "low"), ("low", "l"))
    assert stage.lines() == ["low/1 LOADING", "mid/1 UNKNOWN", "top/1 UNKNOWN"]
    for expected in ("l", "m", "t"):
        stage.finish()
        assert stage.loaded[-1].spec.fingerprint == expected
    assert [outcome.error for outcome in task.result()] == [None, None, None]


def test_wants_of_one_moment_find_each_other(stage: Stage) -> None:
    async def both() -> list[Outcome]:
        wants = (stage.manager.want(stage.spec("e", {1: "e"}, ("p",))), stage.manager.want(stage.spec("p", {1: "p"})))
        return list(await asyncio.gather(*wants))

    task = stage.start(both())
    stage.finish_all()
    assert [outcome.error for outcome in task.result()] == [None, None]


def test_a_missing_step_is_named_and_its_coming_helps(stage: Stage) -> None:
    error = stage.have("e", {1: "e"}, "p").error
    assert error == ErrorRecord(
        Code.INVALID_ARGUMENT,
        "model 'e' cannot be loaded: its step 'p' is not loaded (put it into a model repository, or take it out of the steps)",
    )
    assert stage.lines() == [f"e/1 UNAVAILABLE {error.message}"]
    assert stage.manager.failed() == {ModelId("e")}
    assert stage.have("p", {1: "p"}) == Outcome(ModelId("p"))
    assert stage.lines() == ["e/1 READY", "p/1 READY"]
    assert stage.manager.failed() == frozenset()


def test_the_reason_follows_what_is_still_missing(stage: Stage) -> None:
    stage.have("e", {1: "e"}, "p", "q")
    stage.have("p", {1: "p"})
    error = stage.manager.failure(ModelId("e"))
    assert error
    assert "'q'" in error.message
    assert "'p'" not in error.message
    stage.have("q", {1: "q"})
    assert stage.served("e") == {1: "e"}


def test_a_version_that_is_carried_over_may_get_new_parts(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"})
    assert stage.have("e", {1: "e"}, "p") == Outcome(ModelId("e"), changed=False)
    stage.release("p")
    assert stage.lines() == ["e/1 UNLOADING", "p/1 READY"]


def test_a_failing_step_fails_its_dependents_but_not_others(stage: Stage) -> None:
    stage.broken = {"p"}
    task = together(stage, ("e", "e", "p"), ("p", "p"), ("other", "o"))
    stage.finish_all()
    dependent, part, other = task.result()
    assert "its step 'p' failed to load (model 'p' version 1: RuntimeError: kaputt)" in dependent.error.message
    assert part.error
    assert other.error is None


def test_a_step_with_a_recorded_failure_counts_as_failed(stage: Stage) -> None:
    stage.manager.record_failure(ModelId("p"), ErrorRecord(Code.INVALID_ARGUMENT, "does not parse"))
    error = stage.have("e", {1: "e"}, "p").error
    assert error
    assert "its step 'p' failed to load (does not parse)" in error.message


def test_a_circle_is_named(stage: Stage) -> None:
    task = together(stage, ("a", "a", "b"), ("b", "b", "c"), ("c", "c", "a"))
    errors = [outcome.error.message for outcome in task.result()]
    assert "'a' -> 'b' -> 'c' -> 'a'" in errors[0]
    assert "'b' -> 'c' -> 'a' -> 'b'" in errors[1]
    assert not stage.pools["load"].waiting


def test_a_circle_with_what_already_serves_is_refused(stage: Stage) -> None:
    stage.have("a", {1: "a"})
    stage.have("b", {1: "b"}, "a")
    error = stage.have("a", {1: "a2"}, "b").error
    assert error
    assert "circle" in error.message
    assert stage.served("a") == {1: "a"}


def test_a_reload_of_a_part_leaves_its_dependents_alone(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"}, "p")
    stage.have("p", {2: "q"})
    assert stage.served("e") == {1: "e"}
    assert stage.served("p") == {2: "q"}
    assert [servable.spec.fingerprint for servable in stage.loaded] == ["p", "e", "q"]


def test_dependents_are_unloaded_before_the_part_and_come_back_with_it(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"}, "p")
    handle = stage.acquire("e")
    task = stage.release("p")
    assert stage.lines() == ["e/1 UNLOADING", "p/1 READY"]
    assert stage.reachable("p"), "a running request of the dependent still needs its step"
    stage.let_go(handle)
    stage.finish("unload")
    assert stage.lines() == ["e/1 UNAVAILABLE unloaded", "p/1 UNLOADING"]
    stage.finish("unload")
    assert task.result() == Outcome(ModelId("p"))
    assert stage.manager.failed() == frozenset()
    assert stage.have("p", {1: "p"}) == Outcome(ModelId("p"))
    assert stage.lines() == ["e/1 READY", "p/1 READY"]


def test_a_dependent_released_itself_does_not_come_back(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"}, "p")
    task = stage.start(stage.manager.release_all([ModelId("p"), ModelId("e")]))
    stage.finish_all()
    assert [outcome.error for outcome in task.result()] == [None, None]
    stage.have("p", {1: "p"})
    assert stage.lines() == ["e/1 UNAVAILABLE unloaded", "p/1 READY"]


def test_wanting_a_part_again_before_it_went_keeps_it(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"}, "p")
    handle = stage.acquire("e")
    releasing = stage.release("p")
    wanting = stage.want("p", {1: "p"})
    error = releasing.result().error
    assert error == ErrorRecord(Code.CANCELLED, "model 'p' was wanted again before it was unloaded")
    stage.finish_all()
    assert wanting.result().error is None
    assert stage.served("p") == {1: "p"}
    assert stage.served("e") == {1: "e"}
    stage.let_go(handle)
    stage.finish_all()
    assert sum(servable.closed for servable in stage.loaded) == 1


def test_a_dependent_wanted_while_its_part_goes_follows_it(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    stage.have("e", {1: "e"}, "p")
    handle = stage.acquire("e")
    releasing = stage.release("p")
    error = stage.want("e", {1: "e"}, "p").result().error
    assert error
    assert "its step 'p' is being unloaded" in error.message
    stage.let_go(handle)
    stage.finish_all()
    assert releasing.result() == Outcome(ModelId("p"))
    assert stage.lines() == [f"e/1 UNAVAILABLE {error.message}", "p/1 UNAVAILABLE unloaded"]


def test_a_dependent_that_still_serves_cannot_hold_its_part_back(stage: Stage) -> None:
    together(stage, ("top", "t", "e"), ("e", "e", "p"), ("p", "p"))
    stage.finish_all()
    handle = stage.acquire("top")
    releasing = stage.release("p")
    assert stage.reachable("e"), "a running request of its own dependent still needs it"
    assert stage.want("e", {1: "e"}, "p").result().error
    stage.let_go(handle)
    stage.finish_all()
    assert releasing.result() == Outcome(ModelId("p"))
    assert [line.state for line in stage.manager.index()] == ["UNAVAILABLE"] * 3


def test_releasing_a_part_calls_off_the_load_of_its_dependent(stage: Stage) -> None:
    stage.have("p", {1: "p"})
    wanting = stage.want("e", {1: "e"}, "p")
    stage.release("p")
    error = wanting.result().error
    assert error
    assert "its step 'p' is being unloaded" in error.message


def test_close_goes_from_the_top(stage: Stage) -> None:
    together(stage, ("top", "t", "mid"), ("mid", "m", "low"), ("low", "l"))
    stage.finish_all()
    stage.changes.clear()
    task = stage.start(stage.manager.close(60))
    stage.finish_all()
    assert task.result() is True
    gone = [change.model.name for change in stage.changes if change.state == "UNAVAILABLE"]
    assert gone == ["top", "mid", "low"]


def test_a_step_means_the_model_of_the_same_namespace(stage: Stage) -> None:
    north = stage.spec("p", {1: "n"}, namespace="north")
    south = stage.spec("p", {1: "s"}, namespace="south")
    task = stage.start(stage.manager.want_all([north, south, stage.spec("e", {1: "e"}, ("p",), namespace="south")]))
    stage.finish_all()
    assert [outcome.error for outcome in task.result()] == [None, None, None]
    release = stage.start(stage.manager.release(north.id))
    stage.finish_all()
    assert release.result().error is None
    assert stage.reachable("e")


def test_a_step_of_two_other_namespaces_is_ambiguous(stage: Stage) -> None:
    specs = [stage.spec("p", {1: space}, namespace=space) for space in ("north", "south")]
    stage.start(stage.manager.want_all(specs))
    stage.finish_all()
    error = stage.have("e", {1: "e"}, "p").error
    assert error
    assert "'p' is in several repositories" in error.message
    assert stage.have("e", {1: "e"}, "north::p").error is None
