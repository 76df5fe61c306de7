"""The POLL control mode, on an event loop whose time passes by itself."""

from __future__ import annotations

import asyncio
import logging
import selectors
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

import pytest
from attrs import define, evolve, field

from moorage._control.poll import Poll
from moorage.control import FoundModel, LoadOptions, ModelId, ModelParts, Outcome, Snapshot
from moorage.errors import Code, ErrorRecord, StorageError, Unavailable

ERROR = ErrorRecord(Code.INTERNAL, "kaputt")
UNREACHABLE = ErrorRecord(Code.INTERNAL, "the line is dead", passing=True)


class TimeLoop(asyncio.SelectorEventLoop):
    """Never waits: when nothing is left to do before a timer, it is that timer's time."""

    def __init__(self) -> None:
        self.now = 100.0
        selector = selectors.SelectSelector()
        self._wait = selector.select
        selector.select = self._skip  # type: ignore[method-assign]
        super().__init__(selector)

    def time(self) -> float:
        return self.now

    def _skip(self, timeout: float | None = None) -> Any:
        if timeout is not None and timeout > 0:
            self.now += timeout
            timeout = 0
        return self._wait(timeout)


def model(name: str, shared: str = "", summed: Sequence[int] = (), **versions: str) -> FoundModel:
    """A model whose version folders have these fingerprints: `model("m", v1="a")`."""
    numbered = {int(name[1:]): mark for name, mark in versions.items()}
    parts = ModelParts(shared, numbered, frozenset(summed))
    return FoundModel(ModelId(name), "/repo", tuple(numbered), repr(parts), None, lambda: parts)


@define(eq=False, slots=False)
class FakeContext:
    """`script` maps moments to what lies in the repositories from then on. What is asked of it is noted with its time."""

    loop: TimeLoop
    script: Mapping[float, Snapshot]
    poll_seconds: float = 10.0
    settle_seconds: float = 2.0
    max_loaded_models: int = 0
    initial_models: Sequence[str] = ()
    doubts: dict[str, str] = field(factory=dict)
    """Fingerprint of a version to why it does not match its sums."""
    failing: dict[str, ErrorRecord] = field(factory=dict)
    slow: dict[str, float] = field(factory=dict)
    """Model to the seconds that a load of it takes."""
    calls: list[tuple[float, str]] = field(factory=list)
    scans: list[float] = field(factory=list)
    checks: int = 0
    check_seconds: float = 1

    def note(self, what: str) -> None:
        self.calls.append((self.loop.now - 100, what))

    async def scan(self) -> Snapshot:
        self.scans.append(self.loop.now - 100)
        moment = max((moment for moment in self.script if moment + 100 <= self.loop.now), default=0.0)
        return self.script.get(moment, Snapshot({}))

    async def doubt(self, model: ModelId, version: int) -> str:
        self.checks += 1
        await asyncio.sleep(self.check_seconds)
        return self.doubts.get((await self.scan()).models[model].parts().versions[version], "")

    def idle(self) -> Mapping[ModelId, int]:
        return {}

    def wanted(self) -> frozenset[ModelId]:
        return frozenset()

    async def want(self, models: Sequence[ModelId], options: LoadOptions | None = None) -> list[Outcome]:
        unfinished = sorted(options.unfinished) if options else []
        self.note(f"load {' '.join(map(str, models))}" + (f" without {unfinished}" if unfinished else ""))
        await asyncio.sleep(max(self.slow.get(model.name, 0) for model in models))
        return [Outcome(model, self.failing.get(model.name)) for model in models]

    async def release(
        self, models: Sequence[ModelId], *, dependents: bool = False, versions: frozenset[int] = frozenset()
    ) -> list[Outcome]:
        self.note(f"unload {' '.join(map(str, models))}")
        return [Outcome(model) for model in models]


def snapshot(*models: FoundModel, unreadable: bool = False) -> Snapshot:
    problem = {"/repo": ErrorRecord(Code.INTERNAL, "gone fishing")} if unreadable else {}
    return Snapshot({found.id: found for found in models}, problem)


Make = Callable[..., FakeContext]
Run = Callable[[Coroutine[Any, Any, Any], float], Any]


@pytest.fixture
def loop() -> Iterator[TimeLoop]:
    made = TimeLoop()
    yield made
    made.close()


@pytest.fixture
def context(loop: TimeLoop) -> Make:
    def make(script: Mapping[float, Snapshot], **settings: Any) -> FakeContext:
        return evolve(FakeContext(loop, script), **settings)

    return make


@pytest.fixture
def run(loop: TimeLoop) -> Run:
    """`run(coroutine, until)`: its result, or None if it was cancelled at that time."""

    async def bounded(coroutine: Coroutine[Any, Any, Any], until: float) -> Any:
        task = asyncio.ensure_future(coroutine)
        await asyncio.wait([task], timeout=until + 100 - loop.now)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
            return None
        return task.result()

    return lambda coroutine, until: loop.run_until_complete(bounded(coroutine, until))


async def watch(poll: Poll) -> None:
    await poll.start()
    await poll.run()


def test_the_start_loads_what_two_looks_have_found_at_rest(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"), model("b", v1="x")), 1: snapshot(model("a", v1="x"), model("b", v1="y"))})
    outcomes = run(Poll(stage).start(), 50)
    assert stage.calls == [(2, "load a")]
    assert [outcome.id.name for outcome in outcomes] == ["a"]


def test_without_a_time_to_settle_the_start_waits_for_nothing(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"))}, settle_seconds=0)
    run(Poll(stage).start(), 50)
    assert (stage.calls, stage.scans) == ([(0, "load a")], [0])


def test_the_start_tells_of_failures_and_is_not_held_up_by_what_is_no_model(context: Make, run: Run) -> None:
    stray = evolve(model("stray"), problem=ERROR)
    stage = context({0: snapshot(model("a", v1="x"), stray, model("b", v1="x"))}, failing={"a": ERROR})
    assert run(Poll(stage).start(), 50) == [Outcome(ModelId("a"), ERROR), Outcome(ModelId("b"))]


def test_the_start_needs_every_repository(context: Make, run: Run) -> None:
    with pytest.raises(StorageError, match="fishing"):
        run(Poll(context({0: snapshot(unreadable=True)})).start(), 50)


def test_the_start_waits_for_sums_to_be_checked(context: Make, run: Run) -> None:
    seen = snapshot(model("a", v1="whole", summed=[1]), model("b", v1="half", summed=[1]))
    stage = context({0: seen}, doubts={"half": "model.onnx does not match"})
    run(watch(Poll(stage)), 99)
    assert stage.calls == [(3, "load a")]
    assert stage.checks == 2


def test_what_was_restless_at_the_start_is_taken_by_the_watch(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x")), 1: snapshot(model("a", v1="y"))})
    run(watch(Poll(stage)), 50)
    assert stage.calls == [(4, "load a")]


def test_the_second_look_comes_when_files_may_have_settled(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x")), 15: snapshot(model("a", v1="x", v2="y"))})
    run(watch(Poll(stage)), 40)
    assert stage.scans == [0, 2, 12, 22, 24, 34]
    assert stage.calls == [(2, "load a"), (24, "load a")]


def test_twenty_looks_without_a_change_load_nothing(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"))})
    run(watch(Poll(stage)), 202)
    assert len(stage.scans) >= 20
    assert stage.calls == [(2, "load a")]


def test_models_that_are_gone_are_unloaded(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"), model("b", v1="x")), 5: snapshot(model("b", v1="x"))})
    run(watch(Poll(stage)), 50)
    assert stage.calls == [(2, "load a b"), (14, "unload a")]


def test_a_broken_model_is_tried_again_when_its_files_change_and_not_before(context: Make, run: Run) -> None:
    bad, good = model("bad", v1="x"), model("good", v1="x")
    script = {0: snapshot(), 5: snapshot(bad), 45: snapshot(bad, good), 65: snapshot(model("bad", v1="mended"), good)}
    stage = context(script, failing={"bad": ERROR})
    run(watch(Poll(stage)), 120)
    assert [call for _, call in stage.calls] == ["load bad", "load good", "load bad"]


def test_what_a_store_kept_from_loading_is_tried_again_with_growing_pauses(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"))}, failing={"a": UNREACHABLE})
    run(watch(Poll(stage)), 100)
    assert [moment for moment, _ in stage.calls] == [2, 12, 32, 72]
    assert {call for _, call in stage.calls} == {"load a"}


def test_what_loads_at_last_is_not_loaded_again(context: Make, run: Run) -> None:
    stage = context({0: snapshot(model("a", v1="x"))}, failing={"a": UNREACHABLE})
    poll = Poll(stage)
    run(watch(poll), 11)
    stage.failing.clear()
    run(poll.run(), 200)
    assert [call for _, call in stage.calls] == ["load a", "load a"]


def test_a_change_is_taken_at_once_and_a_model_that_goes_is_not_tried_again(context: Make, run: Run) -> None:
    script = {0: snapshot(model("a", v1="x")), 13: snapshot(model("a", v1="y")), 30: snapshot()}
    stage = context(script, failing={"a": UNREACHABLE})
    run(watch(Poll(stage)), 200)
    assert [call for _, call in stage.calls] == ["load a", "load a", "load a", "unload a"]


def test_a_load_that_takes_for_ever_holds_nothing_up(context: Make, run: Run) -> None:
    slow = model("slow", v1="x")
    script = {0: snapshot(), 5: snapshot(slow), 25: snapshot(slow, model("quick", v1="x")), 45: snapshot(model("slow", v1="y"))}
    stage = context(script, slow={"slow": 1e9})
    run(watch(Poll(stage)), 80)
    assert [call for _, call in stage.calls] == ["load slow", "load quick", "load slow", "unload quick"]


def test_a_model_that_goes_while_it_is_loaded_does_not_come_back(context: Make, run: Run) -> None:
    stage = context({0: snapshot(), 5: snapshot(model("a", v1="x")), 15: snapshot()}, slow={"a": 60})
    run(watch(Poll(stage)), 120)
    assert [call for _, call in stage.calls] == ["load a", "unload a", "unload a"]


def test_an_unreadable_repository_is_told_of_once_and_so_is_its_recovery(
    context: Make, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    there = snapshot(model("a", v1="x"))
    stage = context({0: there, 5: snapshot(unreadable=True), 55: there})
    run(watch(Poll(stage)), 90)
    assert stage.calls == [(2, "load a")]
    told = [record.getMessage() for record in caplog.records if "repository" in record.getMessage()]
    assert ["fishing" in message for message in told] == [True, False]


def test_a_look_that_fails_unexpectedly_ends_nothing(context: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = context({0: snapshot(), 25: snapshot(model("a", v1="x"))})
    scan, failures = stage.scan, iter([False, False, True])

    async def sometimes() -> Snapshot:
        if next(failures, False):
            raise ZeroDivisionError
        return await scan()

    monkeypatch.setattr(stage, "scan", sometimes)
    run(watch(Poll(stage)), 60)
    assert [call for _, call in stage.calls] == ["load a"]


def test_an_unfinished_version_is_left_out(context: Make, run: Run) -> None:
    one, both = model("a", v1="x"), model("a", shared="new", v1="x", v2="half", summed=[2])
    stage = context({0: snapshot(one), 5: snapshot(both)}, doubts={"half": "it is not whole"})
    run(watch(Poll(stage)), 60)
    assert [call for _, call in stage.calls] == ["load a", "load a without [2]"]
    assert stage.checks == 1


def test_sums_that_match_are_acted_upon_at_once(context: Make, run: Run) -> None:
    one, both = model("a", v1="x"), model("a", v1="x", v2="whole", summed=[2])
    stage = context({0: snapshot(one), 5: snapshot(both)})
    run(watch(Poll(stage)), 60)
    assert stage.calls == [(2, "load a"), (15, "load a")], "look at 12, at rest at 14, checked at 15"


def test_a_check_that_takes_long_is_made_once_and_holds_nothing_up(context: Make, run: Run) -> None:
    one, both = model("a", v1="x"), model("a", v1="x", v2="whole", summed=[2])
    script = {0: snapshot(one), 5: snapshot(both), 35: snapshot(both, model("b", v1="x"))}
    stage = context(script, check_seconds=100)
    run(watch(Poll(stage)), 200)
    assert stage.checks == 1
    assert [call for _, call in stage.calls] == ["load a", "load b", "load a"]


def test_the_load_of_a_model_that_has_a_problem_is_not_tried(context: Make, run: Run, caplog: pytest.LogCaptureFixture) -> None:
    ill = evolve(model("a", v1="y"), problem=ErrorRecord(Code.INTERNAL, "permission denied"))
    stage = context({0: snapshot(model("a", v1="x")), 5: snapshot(ill)})
    run(watch(Poll(stage)), 60)
    assert stage.calls == [(2, "load a")]
    assert caplog.text.count("permission denied") == 1


@pytest.mark.parametrize("action", ["load", "unload"])
def test_clients_have_no_say(context: Make, run: Run, action: str) -> None:
    poll = Poll(context({}))
    asked = poll.load("m", LoadOptions()) if action == "load" else poll.unload("m", dependents=False)
    with pytest.raises(Unavailable, match=f"cannot {action} model 'm': .*POLL.*--model-control-mode=explicit"):
        run(asked, 1)


def test_the_doubts_of_a_storage_are_kept_as_such(context: Make, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = context({0: snapshot(model("a", v1="x", summed=[1]))})

    async def fail(*_: object) -> str:
        raise StorageError("the line is dead")

    monkeypatch.setattr(stage, "doubt", fail)
    poll = Poll(stage)
    run(watch(poll), 60)
    assert stage.calls == []
    monkeypatch.undo()
    run(poll.run(), 100)
    assert [call for _, call in stage.calls] == ["load a"]
