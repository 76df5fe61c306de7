from __future__ import annotations

import gc
import shutil
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from attrs import evolve

from moorage.backend import BatchInstance, Placement
from moorage.config.schema import InstanceKind, ModelConfig, ModelOutput, Parameter, SequenceBatching
from moorage.errors import ModelError, RequestError
from moorage.testing import ModelCase
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


def test_the_outputs_of_the_configuration_are_prepared_at_load(load: Callable[..., Any]) -> None:
    made = load("add_sub.savedmodel", ModelConfig(output=(ModelOutput("TOTAL"),))).instance(ON_CPU)
    prepared = dict(made._session._calls)
    made.run({"LEFT": np.ones((1, 3), np.float32), "RIGHT": np.ones((1, 3), np.float32)}, ["TOTAL"])
    assert made._session._calls == prepared


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


@pytest.mark.parametrize("name", ["doubler.savedmodel", "add_sub.graphdef"])
def test_a_closed_model_is_freed_without_the_garbage_collector(name: str, load: Callable[..., Any]) -> None:
    gc.disable()
    try:
        model = load(name)
        made = model.instance(ON_CPU)
        node = weakref.ref(made._session._session.graph.get_operations()[0])
        made.close()
        model.close()
        del made, model
        assert node() is None
    finally:
        gc.enable()


def test_each_device_has_its_own_file(models: Path, tmp_path: Path) -> None:
    case = ModelCase(models / "add_sub.graphdef", ModelConfig(name="m"), GRAPHDEF_FILE)
    context = case.context(tmp_path)
    shutil.copyfile(models / "conv.graphdef", context.version_path / "other.graphdef")
    other = evolve(context, filenames={(InstanceKind.KIND_CPU, 0): "other.graphdef"})
    assert [spec.name for spec in TensorFlowBackend().load(other).signature().inputs] == ["IMAGE"]  # type: ignore[union-attr]


def test_results_are_not_changed_by_later_runs(load: Callable[..., Any]) -> None:
    made = load("runs.savedmodel").instance(ON_CPU)
    first = made.run(STEP, ["SUM"])["SUM"]
    made.run(STEP, ["SUM"])
    assert first.item() == 1


@pytest.mark.parametrize("parameters", [{}, {"TF_NUM_INTRA_THREADS": "1", "TF_NUM_INTER_THREADS": "1"}])
def test_requests_run_at_the_same_time_whatever_the_threads(parameters: Any, tmp_path: Path) -> None:
    """An operation waits until two requests have come to it: they must not wait for each other before it."""
    runtime, meeting = import_runtime("tests"), threading.Barrier(2)

    def meet(x: Any) -> Any:
        meeting.wait(20)
        return x

    graph = runtime.tf.Graph()
    with graph.as_default():
        x = runtime.v1.placeholder(runtime.tf.float32, [1], name="X")
        runtime.tf.identity(runtime.tf.numpy_function(meet, [x], runtime.tf.float32), name="Y")
    (tmp_path / "graph").write_bytes(graph.as_graph_def().SerializeToString())
    given = ModelConfig(name="m", parameters={key: Parameter(value) for key, value in parameters.items()})
    context = ModelCase(tmp_path / "graph", given, GRAPHDEF_FILE).context(tmp_path / "repository", instances=2)
    model = TensorFlowBackend().load(context)
    instances = [cast("BatchInstance", model.instance(placement)) for placement in context.placements]
    inputs = {"X": np.array([7], np.float32)}
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda instance: instance.run(inputs, ["Y"])["Y"].item(), instances))
    assert results == [7, 7]


def test_an_error_of_ours_stays_as_it_is() -> None:
    error = RequestError("plain")
    assert run_error(error, "m") is load_error(error, "m", 1, Path("x")) is error


def test_an_error_without_text_shows_its_type() -> None:
    assert str(run_error(KeyError(), "m")) == "model 'm': KeyError"
    assert isinstance(run_error(KeyError(), "m"), ModelError)
