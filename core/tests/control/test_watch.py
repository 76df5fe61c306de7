"""Which changes of a repository are acted upon, and when: tables, and uploads simulated step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from moorage._control.watch import Check, Decision, Look, Memory, decide
from moorage._repository.fingerprint import of_folder, of_parts
from moorage._repository.layout import Folder, read_folder
from moorage.control import FoundModel, ModelId, Snapshot
from moorage.errors import Code, ErrorRecord
from moorage.storage import Entry

REPO = "/repo"
SETTLE = 2.0
BROKEN = ErrorRecord(Code.INTERNAL, "cannot be read")


def folder(name: str, files: Mapping[str, str]) -> Folder:
    return read_folder(name, [Entry(path, len(content), content) for path, content in files.items()])


def found(name: str, files: Mapping[str, str], repository: str = REPO, problem: ErrorRecord | None = None) -> FoundModel:
    there = folder(name, files)
    parts = None if problem else (lambda: of_parts(there))
    return FoundModel(ModelId(name), repository, there.versions, of_folder(there), problem, parts)


def snapshot(*models: FoundModel, unreadable: str = "") -> Snapshot:
    return Snapshot({model.id: model for model in models}, {unreadable: BROKEN} if unreadable else {})


@define
class Watcher:
    """Carries the memory from look to look. What is decided is noted as "load m", "load m without 2" or "unload m"."""

    settle: float = SETTLE
    memory: Memory = field(factory=Memory)
    checked: dict[Check, bool] = field(factory=dict)
    decision: Decision = field(factory=lambda: Decision(Memory()))

    def look(self, time: float, seen: Snapshot) -> list[str]:
        self.decision = decide(self.memory, Look(seen, time, time), self.settle, self.checked)
        self.memory = self.decision.memory
        left_out = {model: sorted(versions) for model, versions in self.decision.wanted.items()}
        loads = [f"load {model}" + (f" without {versions}" if versions else "") for model, versions in left_out.items()]
        return loads + [f"unload {model}" for model in self.decision.gone]

    def answer(self, fits: bool) -> None:
        """The checks that were asked for have been made."""
        self.checked.update(dict.fromkeys(self.decision.checks, fits))

    def serving(self, *models: FoundModel) -> Watcher:
        """These models have been at rest and were acted upon."""
        self.look(-2 * SETTLE, snapshot(*models))
        self.look(-SETTLE, snapshot(*models))
        return self


V1 = {"config.pbtxt": "c", "1/model": "one"}
V12 = {**V1, "2/model": "two"}


def test_a_model_is_loaded_when_two_looks_have_seen_the_same() -> None:
    watcher = Watcher()
    assert watcher.look(0, snapshot(found("m", V1))) == []
    assert watcher.decision.due == 2
    assert watcher.look(1, snapshot(found("m", V1))) == []
    assert watcher.look(2, snapshot(found("m", V1))) == ["load m"]
    assert watcher.decision.due is None


def test_each_change_starts_the_wait_anew() -> None:
    watcher = Watcher()
    for time in range(10):
        assert watcher.look(time, snapshot(found("m", {**V1, "1/model": f"{time} bytes"}))) == []
    assert watcher.look(11, snapshot(found("m", {**V1, "1/model": "9 bytes"}))) == ["load m"]


def test_without_a_time_to_settle_one_look_is_enough() -> None:
    assert Watcher(settle=0).look(0, snapshot(found("m", V1))) == ["load m"]


def test_a_look_that_takes_long_counts_from_its_end() -> None:
    first = decide(Memory(), Look(snapshot(found("m", V1)), 0, 10), SETTLE, {})
    second = decide(first.memory, Look(snapshot(found("m", V1)), 11, 20), SETTLE, {})
    assert (first.due, second.wanted, second.due) == (12, {}, 12)
    third = decide(second.memory, Look(snapshot(found("m", V1)), 12, 13), SETTLE, {})
    assert list(third.wanted) == [ModelId("m")]


def test_nothing_is_done_while_nothing_changes() -> None:
    watcher = Watcher().serving(found("m", V1))
    assert [watcher.look(time, snapshot(found("m", V1))) for time in range(20)] == [[]] * 20
    assert watcher.decision.due is None


@pytest.mark.parametrize(
    "after,expected",
    [
        ({**V1, "config.pbtxt": "d"}, ["load m"]),
        ({**V1, "1/model": "another"}, ["load m"]),
        ({**V1, "labels.txt": "ash"}, ["load m"]),
        ({**V1, "configs/big.pbtxt": "d"}, ["load m"]),
        ({**V1, "config/extra.yaml": "d"}, ["load m"]),
        (V12, ["load m"]),
        ({"config.pbtxt": "c"}, ["load m"]),
        (None, ["unload m"]),
        ({**V1, "1/__pycache__/model.cpython-312.pyc": "x"}, []),
        ({**V1, "1/.model.swp": "x", "1/model~": "x", "1/weights.part": "x", ".git/HEAD": "x", "notes.tmp": "x"}, []),
    ],
    ids=[
        "config",
        "file",
        "labels",
        "named config",
        "folder like the config",
        "version",
        "last version",
        "gone",
        "code",
        "swap",
    ],
)
def test_what_is_a_change(after: Mapping[str, str] | None, expected: list[str]) -> None:
    watcher = Watcher().serving(found("m", V1))
    seen = snapshot(*([found("m", after)] if after else []))
    assert watcher.look(0, seen) == []
    assert watcher.look(1.9, seen) == []
    assert watcher.look(2, seen) == expected
    assert watcher.look(4, seen) == []


def test_what_is_back_before_it_was_acted_upon_was_no_change() -> None:
    watcher = Watcher().serving(found("m", V1))
    assert watcher.look(0, snapshot()) == []
    assert watcher.look(1, snapshot(found("m", V1))) == []
    assert watcher.look(9, snapshot(found("m", {**V1, "1/model": "x"}))) == []
    assert watcher.look(10, snapshot(found("m", V1))) == []
    assert watcher.look(20, snapshot(found("m", V1))) == []
    assert watcher.memory.sights == {}


def test_an_unfinished_new_version_is_left_out_and_holds_nothing_up() -> None:
    watcher = Watcher().serving(found("m", V1))
    states = [found("m", {**V12, "config.pbtxt": "d", "2/model": "x" * time}) for time in range(6)]
    for time, state in enumerate(states):
        assert watcher.look(time, snapshot(state)) == (["load m without [2]"] if time == 2 else [])
    assert watcher.look(7, snapshot(states[-1])) == ["load m"]


def test_a_removed_version_goes_while_a_new_one_is_written() -> None:
    watcher = Watcher().serving(found("m", V12))
    looks = [watcher.look(time, snapshot(found("m", {**V1, "3/model": "x" * time}))) for time in range(4)]
    assert looks == [[], [], ["load m without [3]"], []]


def test_a_model_waits_while_a_version_that_serves_is_written_over() -> None:
    watcher = Watcher().serving(found("m", V1))
    for time in range(6):
        assert watcher.look(time, snapshot(found("m", {**V12, "1/model": "x" * time}))) == []
    assert watcher.look(7, snapshot(found("m", {**V12, "1/model": "x" * 5}))) == ["load m"]


def test_a_new_model_waits_for_a_version_that_is_being_written() -> None:
    watcher = Watcher()
    for time in range(6):
        assert watcher.look(time, snapshot(found("m", {**V1, "1/model": "x" * time}))) == []


def test_one_restless_model_holds_up_no_other() -> None:
    watcher = Watcher()
    looks = [watcher.look(t, snapshot(found("bad", {**V1, "1/model": "x" * t}), found("good", V1))) for t in range(3)]
    assert looks == [[], [], ["load good"]]


def test_an_unreadable_repository_changes_nothing() -> None:
    watcher = Watcher().serving(found("m", V1))
    for time in range(5):
        assert watcher.look(time, snapshot(unreadable=REPO)) == []
    other = found("m", {**V1, "1/model": "other"}, repository="/other")
    for time in range(5, 10):
        assert watcher.look(time, snapshot(other, unreadable=REPO)) == [], "its own repository may still hold it"
    assert watcher.look(10, snapshot(found("m", V1))) == []
    assert [watcher.look(20 + t, snapshot(found("m", {**V1, "1/model": "x"}), unreadable="/other")) for t in (0, 2)] == [
        [],
        ["load m"],
    ]


def test_a_model_that_moves_to_another_repository_is_taken_from_there() -> None:
    watcher = Watcher().serving(found("m", V1))
    moved = found("m", V1, repository="/other")
    assert [watcher.look(time, snapshot(moved)) for time in (0, 2, 4)] == [[], ["load m"], []]


def test_a_problem_is_acted_upon_once_and_its_end_too() -> None:
    watcher = Watcher().serving(found("m", V1))
    ill = found("m", {**V1, "x": "1"}, problem=BROKEN)
    assert [watcher.look(time, snapshot(ill)) for time in (0, 2, 4, 6)] == [[], ["load m"], [], []]
    assert [watcher.look(time, snapshot(found("m", V1))) for time in (8, 10, 12)] == [[], ["load m"], []]


SUMMED = {**V12, "2/SHA256SUMS": "sums"}


def test_sums_are_checked_once_the_version_is_at_rest() -> None:
    watcher = Watcher().serving(found("m", V1))
    assert watcher.look(0, snapshot(found("m", SUMMED))) == []
    assert not watcher.decision.checks
    assert watcher.look(2, snapshot(found("m", SUMMED))) == []
    assert [check.version for check in watcher.decision.checks] == [2]
    watcher.answer(False)
    assert [watcher.look(time, snapshot(found("m", SUMMED))) for time in (3, 30)] == [[], []]
    assert not watcher.decision.checks, "a check is not made twice"
    whole = snapshot(found("m", {**SUMMED, "2/model": "whole"}))
    assert [watcher.look(time, whole) for time in (40, 42)] == [[], []]
    watcher.answer(True)
    assert watcher.look(42, whole) == ["load m"]


def test_a_version_that_serves_and_no_longer_matches_its_sums_holds_its_model() -> None:
    watcher = Watcher().serving(found("m", V12))
    seen = snapshot(found("m", {**SUMMED, "config.pbtxt": "d"}))
    assert [watcher.look(time, seen) for time in (0, 2)] == [[], []]
    watcher.answer(False)
    assert watcher.look(4, seen) == []


def test_an_upload_that_was_given_up_leaves_nothing_behind() -> None:
    watcher = Watcher().serving(found("m", V1))
    watcher.look(0, snapshot(found("m", V1), found("new", V1)))
    watcher.look(1, snapshot(found("m", V1)))
    assert watcher.memory.sights == {}


# Uploads, step by step

POLL = 5.0
WHOLE = {"config.pbtxt": "config", "1/model": "model", "1/model.data": "data", "1/deep/er/weights": "w"}
UPDATE = {"config.pbtxt": "newer", "2/model": "second", "2/deep/x": "x"}


Step = tuple[float, dict[str, str]]


@st.composite
def uploads(draw: st.DrawFn, patience: float, files: Mapping[str, str]) -> list[Step]:
    """A random way to write these files: (pause before it, what then lies there) of each step, byte by byte, in any order.

    No part (version, or what is shared) that has been begun is left alone for longer than `patience` until it is whole.
    """
    left = {path: len(content) for path, content in files.items()}
    idle: dict[str, float] = {}
    steps: list[Step] = []
    while any(left.values()):
        path = draw(st.sampled_from(sorted(path for path, count in left.items() if count)))
        left[path] -= draw(st.integers(1, left[path]))
        pause = draw(st.floats(0, 1)) * (patience - max(idle.values(), default=0))
        idle = {part: time + pause for part, time in idle.items()} | {_part(path): 0}
        idle = {part: time for part, time in idle.items() if any(left[p] for p in files if _part(p) == part)}
        written = {p: files[p][: len(files[p]) - count] for p, count in left.items() if count < len(files[p])}
        steps.append((pause, written))
    return steps


def _part(path: str) -> str:
    return path.partition("/")[0] if "/" in path else ""


def simulate(
    steps: list[Step],
    before: Mapping[str, str],
    matches: Callable[[Mapping[str, str], int], bool] = lambda _files, _version: True,
) -> tuple[list[Step], float]:
    """Watch an upload into a model: each load (time, the files it takes), and the time of the last step."""
    watcher = Watcher().serving(*([found("m", before)] if before else []))
    clock, moments = 0.3, []
    for pause, written in steps:
        clock += pause
        moments.append((clock, {**before, **written}))
    loads, now = [], 0.0
    while now <= clock + POLL + SETTLE:
        files = next((files for time, files in reversed(moments) if time <= now), dict(before))
        look = snapshot(found("m", files)) if files else snapshot()
        decided = watcher.look(now, look)
        for check in watcher.decision.checks:
            watcher.checked[check] = matches(files, check.version)
        decided += watcher.look(now, look) if watcher.decision.checks else []
        if decided:
            left_out = watcher.decision.wanted[ModelId("m")]
            loads.append((now, {p: c for p, c in files.items() if p.partition("/")[0] not in map(str, left_out)}))
        now = watcher.decision.next_look(now, POLL)
    return loads, clock


SHORT = SETTLE - 0.01
LONG = 4 * SETTLE


@given(uploads(SHORT, WHOLE))
def test_a_new_model_is_loaded_once_and_whole(steps: list[Step]) -> None:
    loads, ended = simulate(steps, {})
    assert [files for _, files in loads] == [WHOLE]
    assert loads[0][0] <= ended + POLL + SETTLE


@given(uploads(SHORT, UPDATE))
def test_a_new_version_is_never_loaded_half(steps: list[Step]) -> None:
    loads, ended = simulate(steps, WHOLE)
    target = {**WHOLE, **UPDATE}
    assert loads[-1][1] == target
    assert loads[-1][0] <= ended + POLL + SETTLE
    for _, files in loads:
        second = {path for path in files if path.startswith("2/")}
        assert second in (set(), {"2/model", "2/deep/x"})
        assert files["config.pbtxt"] in (WHOLE["config.pbtxt"], UPDATE["config.pbtxt"])
        assert all(files[path] == target[path] for path in second)


@given(uploads(SHORT, {"1/model": "MODEL, rewritten", "1/deep/er/weights": "W, too"}))
def test_files_that_are_written_over_are_taken_once(steps: list[Step]) -> None:
    loads, _ = simulate(steps, WHOLE)
    assert [files["1/model"] for _, files in loads] == ["MODEL, rewritten"]


@given(uploads(LONG, {path: content for path, content in UPDATE.items() if path.startswith("2/")}))
def test_with_sums_a_version_is_never_loaded_half_however_long_the_pauses(steps: list[Step]) -> None:
    sums = {"2/SHA256SUMS": "sums"}
    target = {**WHOLE, **sums, **{path: content for path, content in UPDATE.items() if path.startswith("2/")}}
    steps = [(0, sums), *((pause, {**sums, **written}) for pause, written in steps)]
    loads, ended = simulate(steps, WHOLE, lambda files, _version: files == target)
    assert [files for _, files in loads] == [target]
    assert loads[0][0] <= ended + POLL + SETTLE
