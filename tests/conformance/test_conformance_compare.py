"""The comparison itself: what it must tell apart, and what it must not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.runner import metrics, tensors
from conformance.runner.compare import allow_client_error, differs, matches
from conformance.runner.observation import present
from conformance.runner.ports import WORKERS, Ports, share
from conformance.runner.shape import blur, order

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_a_value_is_what_it_is(value: Any) -> None:
    assert differs(value, value) is None
    assert matches(value, value)


@pytest.mark.parametrize(
    "want, got",
    [
        ({"a": 1}, {}),
        ({}, {"a": 1}),
        ([1], [1, 2]),
        (1, 2),
        (1, True),
        (1.0, 1.1),
        ("a", "b"),
        ("<text>", ""),
        ("<text: rowan>", "about something else"),
        ("<text: rowan>", "<text: other>"),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}),
    ],
)
def test_differences_are_seen(want: Any, got: Any) -> None:
    assert differs(want, got)


@pytest.mark.parametrize(
    "want, got",
    [
        ("<any>", [1, 2]),
        ("<text>", "whatever"),
        ("<text: rowan>", "model 'rowan' is gone"),
        (1.0, 1.000001),
        (1, 1.0),
        (float("nan"), float("nan")),
    ],
)
def test_what_is_not_promised_is_not_compared(want: Any, got: Any) -> None:
    assert differs(want, got) is None


def test_a_client_error_is_better_than_an_internal_one() -> None:
    assert allow_client_error({"status": 500}, {"status": 400}) == {"status": 400}
    assert allow_client_error({"code": "INTERNAL"}, {"code": "NOT_FOUND"}) == {"code": "NOT_FOUND"}
    assert allow_client_error({"status": 500}, {"status": 200}) == {"status": 500}
    assert allow_client_error({"status": 400}, {"status": 500}) == {"status": 400}


def test_messages_are_reduced_to_the_words_they_mention() -> None:
    seen = {"error": "no rowan here", "state": "rowan", "time": {"ns": 3}}
    assert blur(seen, ["rowan", "row"], ["*.ns"]) == {"error": "<text: rowan>", "state": "rowan", "time": {"ns": "<any>"}}


def test_only_lists_without_a_promised_order_are_sorted() -> None:
    answer = {"model_name": "m", "outputs": [{"name": "b"}, {"name": "a"}], "versions": ["2", "1"], "data": [2, 1]}
    ordered = order(answer)
    assert [one["name"] for one in ordered["outputs"]] == ["a", "b"]
    assert (ordered["versions"], ordered["data"]) == (["1", "2"], [2, 1])


def test_the_index_is_sorted_and_errors_mention_the_model_of_the_request() -> None:
    index = present({"status": 200, "json": [{"name": "b"}, {"name": "a"}]}, {"http": "POST /v2/repository/index"}, [])
    assert index["json"] == [{"name": "a"}, {"name": "b"}]
    seen = present({"status": 404, "json": {"error": "no model pear"}}, {"http": "GET /v2/models/pear/config"}, [])
    assert seen["json"] == {"error": "<text: pear>"}


def test_a_partial_match_needs_each_item_somewhere() -> None:
    assert matches([{"name": "a"}], [{"name": "b"}, {"name": "a", "state": "READY"}])
    assert not matches([{"name": "c"}], [{"name": "b"}])


@pytest.mark.parametrize("datatype", [*tensors.NUMPY, "BYTES", "BF16"])
def test_tensors_come_back(datatype: str) -> None:
    data = {"BOOL": [True, False], "BYTES": ["a", "hex:00ff", ""]}.get(datatype, [1, 2])
    assert tensors.decode(datatype, tensors.encode(datatype, [data])) == data


def test_metrics_are_reduced_to_families() -> None:
    text = '# TYPE nv_x counter\nnv_x{model="a",gpu_uuid="1"} 3\nnv_x{model="b"} 4\n# TYPE other gauge\nother 1\n'
    keys = metrics.families(text, ["nv_*"], label_values=False, values=[])
    assert keys == {"nv_x": {"type": "counter", "labels": ["model"]}}
    full = metrics.families(text, ["nv_*"], label_values=True, values=["nv_x"])
    assert full["nv_x"]["labels"] == ["model=a -> 3", "model=b -> 4"]


def test_processes_of_a_run_take_different_ports() -> None:
    shares = [set(share(worker)) for worker in range(WORKERS)]
    assert len(set.union(*shares)) == sum(map(len, shares))
    taken = Ports(share(0)).take(30)
    assert len(set(taken)) == 30
