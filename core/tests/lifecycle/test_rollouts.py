"""Wanting and releasing single models: swaps, failures, superseding, cancelling."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from moorage.control import ModelId, Outcome
from moorage.errors import Code, ErrorRecord, NotFound, Unavailable

if TYPE_CHECKING:
    from core.tests.lifecycle.conftest import Stage

M = ModelId("m")


def test_all_versions_come_up_in_one_swap(stage: Stage) -> None:
    task = stage.want("m", {1: "a", 2: "b"})
    stage.finish()
    assert not task.done()
    assert stage.served("m") == {}
    stage.finish()
    assert task.result() == Outcome(M)
    assert stage.serving.swaps == [(M, {1: "a", 2: "b"})]
    assert stage.told("m") == ["1 LOADING", "2 LOADING", "1 READY", "2 READY"]


def test_unchanged_models_are_left_alone(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    assert stage.have("m", {1: "a"}) == Outcome(M, changed=False)
    assert len(stage.loaded) == 1
    assert len(stage.serving.swaps) == 1


def test_force_loads_again_and_serves_meanwhile(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    task = stage.want("m", {1: "a"}, force=True)
    assert stage.lines() == ["m/1 READY"]
    assert stage.serving.get("m") is stage.loaded[0]
    stage.finish_all()
    assert task.result().changed
    assert stage.serving.get("m") is stage.loaded[1]
    assert [servable.closed for servable in stage.loaded] == [1, 0]
    assert stage.told("m") == ["1 LOADING", "1 READY", "1 READY"]


def test_a_replaced_version_drains_before_it_is_closed(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.acquire("m")
    task = stage.want("m", {2: "b"})
    stage.finish_all()
    assert task.done()
    assert stage.lines() == ["m/1 UNLOADING", "m/2 READY"]
    drained = stage.start(stage.manager.drained(M))
    stage.let_go(handle)
    assert not drained.done()
    stage.finish("unload")
    assert drained.done()
    assert stage.lines() == ["m/1 UNAVAILABLE unloaded", "m/2 READY"]
    assert stage.told("m")[2:] == ["2 LOADING", "1 UNLOADING", "2 READY", "1 UNAVAILABLE"]


def test_handles_released_twice_do_no_harm(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.serving.acquire("m")
    stage.release("m")
    handle.release()
    handle.release()
    stage.tick()
    stage.finish_all()
    assert stage.loaded[0].closed == 1


def test_a_failed_version_keeps_the_old_set_serving(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    stage.broken = {"bad"}
    outcome = stage.have("m", {2: "b", 3: "bad"})
    assert outcome.error == ErrorRecord(Code.INTERNAL, "model 'm' version 3: RuntimeError: kaputt")
    assert stage.served("m") == {1: "a"}
    assert stage.lines() == [
        "m/1 READY",
        "m/2 UNAVAILABLE not served, since the load failed: model 'm' version 3: RuntimeError: kaputt",
        "m/3 UNAVAILABLE model 'm' version 3: RuntimeError: kaputt",
    ]
    assert [servable.closed for servable in stage.loaded] == [0, 1]
    assert stage.manager.failure(M) == outcome.error
    assert stage.manager.failed() == frozenset()


def test_a_failed_replacement_of_a_version_itself_stays_ready_in_the_index(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    stage.broken = {"bad"}
    assert stage.have("m", {1: "bad"}).error
    assert stage.lines() == ["m/1 READY"]
    assert stage.told("m") == ["1 LOADING", "1 READY"]


def test_the_next_want_tries_again_after_a_failure(stage: Stage) -> None:
    stage.broken = {"a"}
    assert stage.have("m", {1: "a"}).error
    assert stage.manager.failed() == {M}
    assert stage.have("m", {1: "a"}).error
    stage.broken = set()
    assert stage.have("m", {1: "a"}) == Outcome(M)
    assert stage.manager.failed() == frozenset()
    assert stage.manager.failure(M) is None


def test_loads_are_retried(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(retries=2, broken={"a"})
    task = stage.want("m", {1: "a"})
    stage.finish()
    stage.finish()
    assert not task.done()
    stage.broken = set()
    stage.finish()
    assert task.result() == Outcome(M)


def test_retries_end(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage(retries=1, broken={"a"})
    task = stage.want("m", {1: "a"})
    stage.finish()
    stage.finish()
    assert task.result().error
    assert not stage.pools["load"].waiting


def test_identical_wants_share_one_load(stage: Stage) -> None:
    first, second = stage.want("m", {1: "a"}), stage.want("m", {1: "a"})
    assert len(stage.pools["load"].waiting) == 1
    stage.finish()
    assert first.result() is second.result()


def test_a_cancelled_awaiter_cancels_nothing_for_the_others(stage: Stage) -> None:
    first, second = stage.want("m", {1: "a"}), stage.want("m", {1: "a"})
    first.cancel()
    stage.tick()
    assert first.cancelled()
    stage.finish()
    assert second.result() == Outcome(M)


def test_a_newer_want_supersedes_an_older_one(stage: Stage) -> None:
    older = stage.want("m", {1: "a", 2: "b"})
    stage.finish()
    newer = stage.want("m", {1: "a", 3: "c"})
    stage.finish_all()
    assert older.result() == newer.result() == Outcome(M)
    assert stage.serving.swaps == [(M, {1: "a", 3: "c"})]
    assert stage.lines() == ["m/1 READY", "m/2 UNAVAILABLE superseded by a newer load", "m/3 READY"]
    assert [(servable.spec.fingerprint, servable.closed) for servable in stage.loaded] == [("a", 0), ("c", 0)]


def test_a_load_that_already_runs_is_closed_when_it_is_not_needed(stage: Stage) -> None:
    stage.want("m", {1: "a"})
    stage.pools["load"].begin()
    newer = stage.want("m", {1: "b"})
    stage.finish(index=1)
    assert newer.result() == Outcome(M)
    stage.finish_all()
    assert [(servable.spec.fingerprint, servable.closed) for servable in stage.loaded] == [("b", 0), ("a", 1)]
    assert stage.served("m") == {1: "b"}


def test_a_load_given_up_by_a_failure_is_taken_up_again_while_it_runs(stage: Stage) -> None:
    stage.broken = {"bad"}
    stage.want("m", {1: "slow", 2: "bad"})
    stage.pools["load"].begin()
    stage.finish(index=1)
    again = stage.want("m", {1: "slow", 2: "good"})
    stage.finish(index=1)
    assert not again.done()
    stage.finish()
    assert again.result() == Outcome(M)
    assert len(stage.loaded) == 2


def test_a_failing_load_that_was_superseded_fails_nobody(stage: Stage) -> None:
    stage.broken = {"bad"}
    stage.want("m", {1: "bad"})
    stage.pools["load"].begin()
    newer = stage.want("m", {1: "a"})
    stage.finish()
    stage.finish()
    assert newer.result() == Outcome(M)


def test_models_load_side_by_side(stage: Stage) -> None:
    task = stage.start(stage.manager.want_all([stage.spec("m", {1: "a"}), stage.spec("n", {1: "b"})]))
    stage.finish(index=1)
    assert stage.served("n") == {1: "b"}
    assert stage.served("m") == {}
    stage.finish_all()
    assert [outcome.id.name for outcome in task.result()] == ["m", "n"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError(), NotFound("no weights")])
def test_whatever_a_load_raises_becomes_a_record(make_stage: Callable[..., Stage], error: BaseException) -> None:
    stage = make_stage(error=error, broken={"a"})
    record = stage.have("m", {1: "a"}).error
    assert record is not None
    assert record.message.startswith("model 'm' version 1: ")
    assert str(error) in record.message
    assert record.code is (Code.NOT_FOUND if isinstance(error, NotFound) else Code.INTERNAL)


def test_an_empty_set_unloads_nothing(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    outcome = stage.have("m", {})
    assert outcome.error
    assert "no version" in outcome.error.message
    assert stage.served("m") == {1: "a"}


def test_a_failing_observer_is_survived(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("observer")

    monkeypatch.setattr(stage.manager._conductor._announcer, "_on_change", fail)
    assert stage.have("m", {1: "a"}) == Outcome(M)
    assert "observer" in caplog.text


def test_release_drains_then_closes(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.acquire("m")
    task = stage.release("m")
    assert stage.lines() == ["m/1 UNLOADING"]
    with pytest.raises(NotFound, match="'m' has no version that serves"):
        stage.serving.acquire("m")
    with pytest.raises(Unavailable, match="'m' version 1"):
        stage.serving.acquire("m", 1)
    stage.let_go(handle)
    assert not task.done()
    stage.finish("unload")
    assert task.result() == Outcome(M)
    assert stage.lines() == ["m/1 UNAVAILABLE unloaded"]
    assert stage.loaded[0].closed == 1


def test_releasing_what_is_not_there_is_no_error(stage: Stage) -> None:
    assert stage.release("m").result() == Outcome(M, changed=False)
    stage.have("m", {1: "a"})
    stage.release("m")
    stage.finish_all()
    assert stage.release("m").result() == Outcome(M, changed=False)


def test_a_failed_model_that_is_released_counts_no_more(stage: Stage) -> None:
    stage.broken = {"a"}
    stage.have("m", {1: "a"})
    assert stage.release("m").result() == Outcome(M)
    assert stage.lines() == ["m/1 UNAVAILABLE unloaded"]
    assert stage.manager.failed() == frozenset()


def test_release_calls_off_a_load(stage: Stage) -> None:
    wanting = stage.want("m", {1: "a"})
    releasing = stage.release("m")
    assert wanting.result().error == ErrorRecord(Code.CANCELLED, "model 'm' was unloaded while it was loading")
    assert releasing.result() == Outcome(M)
    stage.finish_all()
    assert stage.loaded == []


def test_a_load_that_cannot_be_called_off_does_not_hide_that_the_old_version_goes(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.acquire("m")
    stage.want("m", {1: "a"}, force=True)
    stage.pools["load"].begin()
    releasing = stage.release("m")
    assert stage.lines() == ["m/1 UNLOADING"]
    assert stage.told("m") == ["1 LOADING", "1 READY", "1 UNLOADING"]
    stage.let_go(handle)
    stage.finish("unload")
    assert not releasing.done()
    stage.finish_all()
    assert releasing.result() == Outcome(M)
    assert [servable.closed for servable in stage.loaded] == [1, 1]


def test_past_loads_are_forgotten(stage: Stage) -> None:
    for number in range(10):
        stage.have("m", {1: str(number)})
    assert len(stage.manager._models.ensure(M).units) == 2


def test_wanting_again_while_the_old_one_drains(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.acquire("m")
    releasing = stage.release("m")
    assert stage.have("m", {1: "a"}) == Outcome(M)
    assert stage.lines() == ["m/1 READY"]
    assert not releasing.done()
    stage.let_go(handle)
    stage.finish_all()
    assert releasing.result() == Outcome(M)
    assert [servable.closed for servable in stage.loaded] == [1, 0]
    assert stage.told("m") == ["1 LOADING", "1 READY", "1 UNLOADING", "1 LOADING", "1 READY"]


def test_failures_before_there_is_a_version(stage: Stage) -> None:
    record = ErrorRecord(Code.INVALID_ARGUMENT, "config.pbtxt:3: expected a value")
    stage.manager.record_failure(M, record)
    assert stage.lines() == ["m/None UNAVAILABLE config.pbtxt:3: expected a value"]
    assert stage.manager.failed() == {M}
    assert stage.release("m").result() == Outcome(M)
    assert stage.lines() == []
    assert stage.manager.failed() == frozenset()


def test_a_broken_config_under_a_serving_model_shows_ready(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    stage.manager.record_failure(M, ErrorRecord(Code.INVALID_ARGUMENT, "bad"))
    assert stage.lines() == ["m/1 READY"]
    assert stage.manager.failed() == frozenset()
    assert stage.manager.failure(M)
    stage.have("m", {1: "a"})
    assert stage.manager.failure(M) is None


def test_close_unloads_everything_and_refuses_more(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    loading = stage.want("n", {1: "b"})
    task = stage.start(stage.manager.close(60))
    stage.finish_all()
    assert task.result() is True
    assert loading.result().error
    assert all(servable.closed == 1 for servable in stage.loaded)
    assert all(pool.stopped for pool in stage.pools.values())
    refused = stage.want("m", {1: "a"}).result().error
    assert refused
    assert refused.code is Code.UNAVAILABLE


def test_close_ends_at_the_timeout_though_requests_run(stage: Stage) -> None:
    stage.have("m", {1: "a"})
    handle = stage.acquire("m")
    assert stage.loop.run_until_complete(stage.manager.close(0)) is False
    assert stage.loaded[0].closed == 0
    stage.let_go(handle)
    stage.finish_all()
    assert stage.loaded[0].closed == 1


def test_close_ends_at_the_timeout_though_a_load_hangs(stage: Stage) -> None:
    stage.want("m", {1: "a"})
    stage.pools["load"].begin()
    assert stage.loop.run_until_complete(stage.manager.close(0)) is True
    stage.finish_all()
    assert stage.loaded[0].closed == 1


def test_a_load_that_outlives_the_loop_is_closed(stage: Stage) -> None:
    stage.want("m", {1: "a"}).cancel()
    stage.tick()
    stage.loop.close()
    stage.pools["load"].run()
    assert stage.loaded[0].closed == 1
