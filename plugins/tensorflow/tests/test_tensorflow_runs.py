from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.backend import Placement
from moorage.config.schema import InstanceKind, ModelConfig, Parameter, SequenceBatching
from moorage.errors import ModelError, RequestError
from moorage.testing import ModelCase, Runner
from moorage_tensorflow.backend import GRAPHDEF_FILE, TensorFlowBackend
from moorage_tensorflow.faults import load_error, run_error
from moorage_tensorflow.runtime import import_runtime

ON_CPU = Placement("m", InstanceKind.KIND_CPU)
STEP = {"STEP": np.ones(1, np.float32)}


def test_blurs_an_image(instance: Callable[..., Any]) -> None:
    image = np.zeros((1, 5, 5, 1), np.float32)
    image[0, 2, 2, 0] = 9
    blurred = instance("conv.graphdef").run({"IMAGE": image}, ["BLURRED"])["BLURRED"]
    np.testing.assert_allclose(blurred[0, 1:4, 1:4, 0], 1, rtol=1e-6)
    assert blurred.sum() == pytest.approx(9)


def test_outputs_come_in_any_order(instance: Callable[..., Any]) -> None:
    left, right = np.ones((1, 3), np.float32), np.full((1, 3), 5, np.float32)
    results = instance("add_sub.savedmodel").run({"RIGHT": right, "LEFT": left}, ["TOTAL", "GAP"])
    np.testing.assert_array_equal(results["TOTAL"], left + right)
    np.testing.assert_array_equal(results["GAP"], left - right)


@pytest.mark.parametrize("shape", [(1, 4), (3,), (1, 1, 3), ()])
def test_a_shape_that_the_model_does_not_declare_is_refused_before_it_runs(instance: Callable[..., Any], shape: Any) -> None:
    made = instance("doubler.savedmodel")
    with pytest.raises(RequestError, match=r"^model 'doubler': input 'X' has shape \[.*\], but the model takes \[-1, 3\]$"):
        made.run({"X": np.ones(shape, np.float32)}, ["Y"])


def test_an_input_left_out_is_named(instance: Callable[..., Any]) -> None:
    with pytest.raises(RequestError, match="model 'add_sub': input 'RIGHT' is missing"):
        instance("add_sub.savedmodel").run({"LEFT": np.ones((1, 3), np.float32)}, ["GAP"])


def test_an_index_out_of_range_is_the_request_s_fault(instance: Callable[..., Any]) -> None:
    with pytest.raises(RequestError, match=r"^model 'table_row': .*not in \[0, 3\)[^\n]*$"):
        instance("table_row.graphdef").run({"ROW": np.array([7])}, ["VALUE"])


def test_sessions_are_shared_and_closed_with_their_last_instance(load: Callable[..., Any]) -> None:
    model = load("doubler.savedmodel", instances=2)
    first, second = model.instance(ON_CPU), model.instance(ON_CPU)
    x = {"X": np.ones((1, 3), np.float32)}
    assert first._session is second._session
    session = first._session._session
    first.close()
    second.run(x, ["Y"])
    second.close()
    assert session._closed
    third = model.instance(ON_CPU)
    np.testing.assert_array_equal(third.run(x, ["Y"])["Y"], x["X"] * 2)
    third.close()
    model.close()


@pytest.mark.parametrize("count, sessions", [("1", 3), ("2", 2), ("3", 1)])
def test_sessions_are_shared_by_as_many_as_is_said(count: str, sessions: int, load: Callable[..., Any]) -> None:
    model = load("doubler.savedmodel", MAX_SESSION_SHARE_COUNT=count)
    instances = [model.instance(ON_CPU) for _ in range(3)]
    assert len({one._session for one in instances}) == sessions
    for one in instances:
        one.close()


def test_instances_whose_runs_leave_traces_have_a_session_of_their_own(load: Callable[..., Any]) -> None:
    model = load("runs.savedmodel")
    first, second = model.instance(ON_CPU), model.instance(ON_CPU)
    assert [first.run(STEP, ["SUM"])["SUM"].item() for _ in range(3)] == [1, 2, 3]
    assert second.run(STEP, ["SUM"])["SUM"].item() == 1


def test_so_have_those_of_sequences(load: Callable[..., Any]) -> None:
    model = load("doubler.savedmodel", ModelConfig(scheduling=SequenceBatching()))
    assert model.instance(ON_CPU)._session is not model.instance(ON_CPU)._session


def test_results_are_not_changed_by_later_runs(load: Callable[..., Any]) -> None:
    made = load("runs.savedmodel").instance(ON_CPU)
    first = made.run(STEP, ["SUM"])["SUM"]
    made.run(STEP, ["SUM"])
    assert first.item() == 1


@pytest.mark.parametrize("parameters", [{}, {"TF_NUM_INTRA_THREADS": "1", "TF_NUM_INTER_THREADS": "1"}])
def test_a_request_that_waits_does_not_hold_up_another(parameters: Any, tmp_path: Path) -> None:
    """One request takes from an empty queue of the session; it can end only if another, that puts, runs meanwhile."""
    runtime = import_runtime("tests")
    tf = runtime.tf
    graph = tf.Graph()
    with graph.as_default():
        queue = tf.queue.FIFOQueue(4, [tf.float32], [[1]], name="waiting")
        x = runtime.v1.placeholder(tf.float32, [1], name="X")
        with tf.control_dependencies([queue.enqueue([x])]):
            tf.identity(x, name="PUT")
        tf.identity(queue.dequeue(), name="TAKEN")
    (tmp_path / "graph").write_bytes(graph.as_graph_def().SerializeToString())
    given = {key: Parameter(value) for key, value in {**parameters, "MAX_SESSION_SHARE_COUNT": "2"}.items()}
    case = ModelCase(tmp_path / "graph", ModelConfig(name="m", parameters=given), GRAPHDEF_FILE)
    context = case.context(tmp_path / "repository", instances=2)
    model = TensorFlowBackend().load(context)
    taker, putter = (Runner(model.instance(placement), case.config) for placement in context.placements)
    inputs = {"X": np.array([7], np.float32)}
    with ThreadPoolExecutor(2) as pool:
        taken = pool.submit(taker.one, inputs, ["TAKEN"])
        pool.submit(putter.one, inputs, ["PUT"]).result(20)
        assert taken.result(20)["TAKEN"].tolist() == [7]


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = RequestError("plain")
    assert run_error(error, "m") is load_error(error, "m", 1, Path("x")) is error


def test_an_error_without_text_shows_its_type() -> None:
    assert str(run_error(KeyError(), "m")) == "model 'm': KeyError"
    assert isinstance(run_error(KeyError(), "m"), ModelError)
