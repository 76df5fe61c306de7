"""The pure modules: tables of what is given and what is decided."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from attrs import frozen

from moorage._lifecycle import graph, transitions
from moorage._lifecycle.graph import Part, PartView
from moorage._lifecycle.plan import decide
from moorage._lifecycle.rollout import Verdict, exchange, joins, verdict
from moorage._lifecycle.transitions import LEGAL, IllegalChange, State
from moorage._repository.spec import ModelSpec
from moorage.control import ModelId


@frozen
class Held:
    serial: int
    version: int
    fingerprint: str
    state: State
    claimed: bool = True

    @property
    def identity(self) -> str:
        return self.fingerprint.partition("#")[0] if "#" in self.fingerprint else ""


@pytest.mark.parametrize("before", State)
@pytest.mark.parametrize("after", State)
def test_only_listed_changes_are_legal(before: State, after: State) -> None:
    if after in LEGAL[before]:
        transitions.check(before, after)
    else:
        with pytest.raises(IllegalChange, match=f"{before.value} to {after.value}"):
            transitions.check(before, after)


def test_every_state_has_an_end_and_a_wire_name() -> None:
    names = {state: state.wire for state in State}
    assert set(names.values()) == {"UNKNOWN", "LOADING", "READY", "UNLOADING", "UNAVAILABLE"}
    assert {state for state in State if state.ended} == {state for state in State if state.wire == "UNAVAILABLE"}
    reached = set(State)
    for _ in State:
        reached = {after for before in reached for after in LEGAL[before]}
    assert reached == set(), "a version could change for ever"


@pytest.mark.parametrize(
    "state,carried",
    [
        (State.NEW, True),
        (State.LOADING, True),
        (State.STAGED, True),
        (State.READY, True),
        (State.DRAINING, False),
        (State.UNLOADING, False),
        (State.UNLOADED, False),
        (State.FAILED, False),
    ],
)
def test_unchanged_versions_are_carried_over(spec: Callable[..., ModelSpec], state: State, carried: bool) -> None:
    unit = Held(1, 1, "a", state)
    plan = decide([unit], spec("m", {1: "a"}))
    assert plan.carried == ((unit,) if carried else ())
    assert [load.version for load in plan.loads] == ([] if carried else [1])
    assert plan.dropped == ()


@pytest.mark.parametrize(
    "unit,wanted,renewed",
    [
        (Held(1, 1, "a#1", State.READY), "a#2", True),
        (Held(1, 1, "a#1", State.READY), "b#2", False),
        (Held(1, 2, "a#1", State.READY), "a#2", False),
        (Held(1, 1, "a#1", State.READY), "a#1", False),
        (Held(1, 1, "a", State.READY), "b", False),
        (Held(1, 1, "a#1", State.STAGED), "a#2", False),
        (Held(1, 1, "a#1", State.DRAINING), "a#2", False),
    ],
)
def test_what_differs_in_its_instances_alone_is_renewed(
    spec: Callable[..., ModelSpec], unit: Held, wanted: str, renewed: bool
) -> None:
    plan = decide([unit], spec("m", {1: wanted}), renew=True)
    assert [renewal.unit for renewal in plan.renewals] == ([unit] if renewed else [])
    assert len(plan.carried) + len(plan.loads) + len(plan.renewals) == 1
    for forced in (decide([unit], spec("m", {1: wanted}), force={1}, renew=True), decide([unit], spec("m", {1: wanted}))):
        assert forced.renewals == ()


@pytest.mark.parametrize(
    "units,wanted,force,carried,loads,dropped",
    [
        ([], {1: "a", 2: "b"}, False, [], [1, 2], []),
        ([Held(1, 1, "a", State.READY)], {1: "a"}, True, [], [1], []),
        ([Held(1, 1, "a", State.READY)], {1: "b"}, False, [], [1], []),
        ([Held(1, 1, "a", State.READY)], {2: "a"}, False, [], [2], []),
        ([Held(1, 1, "a", State.LOADING)], {1: "b"}, False, [], [1], [1]),
        ([Held(1, 1, "a", State.STAGED), Held(2, 2, "b", State.NEW)], {2: "b"}, False, [2], [], [1]),
        ([Held(1, 1, "a", State.LOADING, claimed=False)], {2: "b"}, False, [], [2], []),
        ([Held(1, 1, "a", State.READY), Held(2, 1, "a", State.LOADING)], {1: "a"}, False, [2], [], []),
        ([Held(1, 1, "a", State.READY), Held(2, 1, "a", State.LOADING, claimed=False)], {1: "a"}, False, [1], [], []),
        ([Held(1, 1, "a", State.LOADING)], {1: "a"}, True, [], [1], [1]),
    ],
)
def test_plans(
    spec: Callable[..., ModelSpec],
    units: list[Held],
    wanted: dict[int, str],
    force: bool,
    carried: list[int],
    loads: list[int],
    dropped: list[int],
) -> None:
    plan = decide(units, spec("m", wanted), force=set(wanted) if force else ())
    assert [unit.serial for unit in plan.carried] == carried
    assert [load.version for load in plan.loads] == loads
    assert [unit.serial for unit in plan.dropped] == dropped


@pytest.mark.parametrize(
    "states,expected",
    [
        ([State.STAGED], Verdict.SWAP),
        ([State.READY, State.STAGED], Verdict.SWAP),
        ([State.READY], Verdict.SWAP),
        ([State.STAGED, State.LOADING], Verdict.WAIT),
        ([State.NEW, State.READY], Verdict.WAIT),
        ([State.FAILED, State.LOADING], Verdict.FAIL),
        ([State.FAILED, State.STAGED], Verdict.FAIL),
    ],
)
def test_all_or_none(states: list[State], expected: Verdict) -> None:
    assert verdict(states) is expected


def test_a_swap_brings_in_the_staged_and_retires_what_is_left_out() -> None:
    old, kept, new = Held(1, 1, "a", State.READY), Held(2, 2, "b", State.READY), Held(3, 3, "c", State.STAGED)
    change = exchange({2: kept, 3: new}, [old, kept, new, Held(4, 1, "x", State.DRAINING)])
    assert (change.enter, change.retire) == ((new,), (old,))
    assert exchange({2: kept}, [kept]).empty


@pytest.mark.parametrize(
    "running_force,versions,needs,force,expected",
    [
        (frozenset(), {1: "a"}, ("p",), frozenset(), True),
        (frozenset({1}), {1: "a"}, ("p",), frozenset(), True),
        (frozenset({1}), {1: "a"}, ("p",), frozenset({1}), True),
        (frozenset(), {1: "a"}, ("p",), frozenset({1}), False),
        (frozenset(), {1: "b"}, ("p",), frozenset(), False),
        (frozenset(), {1: "a", 2: "b"}, ("p",), frozenset(), False),
        (frozenset(), {1: "a"}, (), frozenset(), False),
        (frozenset({2}), {1: "a"}, ("p",), frozenset({1}), False),
        (frozenset({1, 2}), {1: "a"}, ("p",), frozenset({1}), True),
    ],
)
def test_joining_a_rollout_that_runs(
    spec: Callable[..., ModelSpec],
    running_force: frozenset[int],
    versions: dict[int, str],
    needs: tuple[str, ...],
    force: frozenset[int],
    expected: bool,
) -> None:
    assert joins(spec("m", {1: "a"}, ("p",)), running_force, spec("m", versions, needs), force) is expected


@pytest.mark.parametrize(
    "edges,expected",
    [
        ({"a": []}, None),
        ({"a": ["b"], "b": ["c"], "c": ["b"]}, None),
        ({"a": ["a"]}, ("a", "a")),
        ({"a": ["b"], "b": ["a"]}, ("a", "b", "a")),
        ({"a": ["x", "b"], "x": [], "b": ["c", "x"], "c": ["a"]}, ("a", "b", "c", "a")),
    ],
)
def test_circles(edges: dict[str, list[str]], expected: tuple[str, ...] | None) -> None:
    assert graph.cycle("a", lambda node: edges.get(node, [])) == expected


@pytest.mark.parametrize(
    "parts,complaint,pending",
    [
        ({}, None, ()),
        ({"p": PartView(Part.SERVING)}, None, ()),
        ({"p": PartView(Part.SERVING), "q": PartView(Part.COMING)}, None, ("q",)),
        ({"p": PartView(Part.ABSENT), "q": PartView(Part.COMING)}, "step 'p' is not loaded", ("q",)),
        ({"p": PartView(Part.FAILED, "no weights")}, "step 'p' failed to load (no weights)", ()),
        ({"p": PartView(Part.FAILED, "x"), "q": PartView(Part.LEAVING)}, "(x); its step 'q' is being unloaded", ()),
        ({"p": PartView(Part.AMBIGUOUS)}, "step 'p' is in several repositories (name it as NAMESPACE::NAME)", ()),
    ],
)
def test_parts(parts: dict[str, PartView], complaint: str | None, pending: tuple[str, ...]) -> None:
    refusal = graph.refusal(ModelId("e"), parts)
    assert graph.pending(parts) == pending
    if complaint is None:
        assert refusal is None
    else:
        assert refusal
        assert complaint in refusal.message
        assert "'e'" in refusal.message


@pytest.mark.parametrize("name,expected", [("p", ["n", "s"]), ("s::p", ["s"]), ("q", []), ("x::p", [])])
def test_names_of_steps(name: str, expected: list[str]) -> None:
    ids = [ModelId("p", "n"), ModelId("p", "s"), ModelId("other", "n")]
    assert [found.namespace for found in graph.resolve(name, ids)] == expected
