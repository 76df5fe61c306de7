from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from moorage.backend import LoadContext, Placement
from moorage.config.schema import (
    Accelerator,
    ExecutionAccelerators,
    Graph,
    InstanceKind,
    ModelConfig,
    ModelOperations,
    OptimizationPolicy,
    Parameter,
)
from moorage.errors import ConfigError, ModelError
from moorage.testing import ModelCase
from moorage_tensorflow.backend import GRAPHDEF_FILE, SAVEDMODEL_FOLDER, TensorFlowBackend
from moorage_tensorflow.devices import check_device, device_name
from moorage_tensorflow.optimization import optimise
from moorage_tensorflow.options import Memory, Threads, check_version, memory, share_count, threads
from moorage_tensorflow.reach import keeps_state, reachable
from moorage_tensorflow.runtime import import_runtime
from moorage_tensorflow.sessions import SessionMaker

ON_CPU = Placement("m_0", InstanceKind.KIND_CPU)
ON_GPU = Placement("m_0", InstanceKind.KIND_GPU, 1)
CORES = len(os.sched_getaffinity(0))
OPERATION = """
#include <tensorflow/c/kernels.h>
#include <tensorflow/c/ops.h>
#include <tensorflow/c/tf_status.h>
static void *create(TF_OpKernelConstruction *c) { return (void *)c; }
static void compute(void *kernel, TF_OpKernelContext *context) {
  TF_Tensor *input; TF_Status *status = TF_NewStatus();
  TF_GetInput(context, 0, &input, status); TF_SetOutput(context, 0, input, status);
  TF_DeleteTensor(input); TF_DeleteStatus(status);
}
static void end(void *kernel) {}
__attribute__((constructor)) static void registered(void) {
  TF_Status *status = TF_NewStatus();
  TF_OpDefinitionBuilder *op = TF_NewOpDefinitionBuilder("MooragePass");
  TF_OpDefinitionBuilderAddInput(op, "x: float"); TF_OpDefinitionBuilderAddOutput(op, "y: float");
  TF_RegisterOpDefinition(op, status);
  TF_RegisterKernelBuilder("MooragePass", TF_NewKernelBuilder("MooragePass", "CPU", create, compute, end), status);
  TF_DeleteStatus(status);
}
"""


def context(*places: Placement, backend_config: Any = None, **parameters: str) -> LoadContext:
    config = ModelConfig(name="m", parameters={key: Parameter(value) for key, value in parameters.items()})
    return LoadContext("m", 1, config, Path("m/1"), Path("m"), GRAPHDEF_FILE, places or (ON_CPU,), backend_config or {})


def test_the_instance_s_own_thread_runs_requests() -> None:
    assert threads(context()) == Threads(CORES, 0, own_pool=False)
    assert threads(context(TF_NUM_INTER_THREADS="1")) == Threads(CORES, 0, own_pool=False)


def test_threads_inside_operators_are_divided_among_the_instances() -> None:
    assert threads(context(ON_CPU)).inside == CORES
    assert threads(context(*[ON_CPU] * CORES)).inside == 1
    assert threads(context(*[ON_CPU] * CORES * 4)).inside == 1


def test_threads_by_parameter() -> None:
    found = threads(context(TF_NUM_INTRA_THREADS="3", TF_NUM_INTER_THREADS="2"))
    assert found == Threads(3, 2, own_pool=True)
    assert threads(context(TF_NUM_INTER_THREADS="2", TF_USE_PER_SESSION_THREADS="off")) == Threads(CORES, 2, own_pool=False)
    assert threads(context(TF_USE_PER_SESSION_THREADS="True")) == Threads(CORES, CORES, own_pool=True)


def test_the_model_s_own_parameter_beats_the_command_line() -> None:
    command_line = {"TF_NUM_INTRA_THREADS": "5", "TF_NUM_INTER_THREADS": "4"}
    assert threads(context(backend_config=command_line, TF_NUM_INTRA_THREADS="3")) == Threads(3, 4, own_pool=True)


def test_a_session_has_the_threads_that_its_model_asks_for(load: Callable[..., Any]) -> None:
    def begun(**parameters: str) -> int:
        before = len(list(Path("/proc/self/task").iterdir()))
        model = load(f"identity_{parameters.pop('kind')}.graphdef", **parameters)
        number = len(list(Path("/proc/self/task").iterdir())) - before
        model.close()
        return number

    begun(kind="bool")  # the first session starts threads of the process, too
    assert begun(kind="fp32", TF_NUM_INTRA_THREADS="9") - begun(kind="fp64", TF_NUM_INTRA_THREADS="4") == 5
    assert (
        begun(kind="int8", TF_NUM_INTRA_THREADS="1", TF_NUM_INTER_THREADS="7") - begun(kind="uint8", TF_NUM_INTRA_THREADS="1")
        == 7
    )


@pytest.mark.parametrize(
    "parameters, words",
    [
        ({"TF_NUM_INTRA_THREADS": "many"}, r"parameters\.TF_NUM_INTRA_THREADS: 'many' is not a whole number from 0 up"),
        ({"TF_NUM_INTRA_THREADS": "-1"}, r"parameters\.TF_NUM_INTRA_THREADS: '-1'"),
        ({"TF_NUM_INTER_THREADS": "2.5"}, r"parameters\.TF_NUM_INTER_THREADS: '2\.5'"),
        ({"TF_USE_PER_SESSION_THREADS": "perhaps"}, r"parameters\.TF_USE_PER_SESSION_THREADS: 'perhaps' is not true or false"),
    ],
)
def test_a_parameter_that_is_no_number_is_a_config_error(parameters: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"model 'm': {words}"):
        threads(context(**parameters))


@pytest.mark.parametrize("count", ["0", "-2", "all"])
def test_a_share_count_is_positive(count: str) -> None:
    with pytest.raises(ConfigError, match=r"model 'm': parameters\.MAX_SESSION_SHARE_COUNT"):
        share_count(context(MAX_SESSION_SHARE_COUNT=count))


def test_memory_is_taken_when_it_is_needed() -> None:
    assert memory(context()) == Memory(0, soft_placement=True)
    given = {"gpu-memory-fraction": "0.5", "allow-soft-placement": "false"}
    assert memory(context(backend_config=given)) == Memory(0.5, soft_placement=False)


def test_sessions_are_told_where_and_with_how_much_memory() -> None:
    given = context(backend_config={"gpu-memory-fraction": "0.5", "allow-soft-placement": "0"})
    maker = SessionMaker(import_runtime("tests"), given, lambda path: pytest.fail(f"{path} was read"))
    on_gpu, on_cpu = maker._options(ON_GPU), maker._options(ON_CPU)
    assert (on_gpu.gpu_options.per_process_gpu_memory_fraction, on_gpu.gpu_options.allow_growth) == (0.5, False)
    assert (dict(on_gpu.device_count), dict(on_cpu.device_count)) == ({}, {"GPU": 0})
    assert not on_gpu.allow_soft_placement
    plain = SessionMaker(import_runtime("tests"), context(), lambda path: pytest.fail(f"{path} was read"))._options(ON_GPU)
    assert plain.allow_soft_placement
    assert plain.gpu_options.allow_growth


def test_the_graph_may_choose_its_devices(models: Path, tmp_path: Path) -> None:
    case = ModelCase(models / "add_sub.savedmodel", ModelConfig(name="m"), SAVEDMODEL_FOLDER)
    placed = evolve(case.context(tmp_path), placements=(Placement("m_0", InstanceKind.KIND_MODEL),))
    made = TensorFlowBackend().load(placed).instance(placed.placements[0])
    x = np.ones((1, 3), np.float32)
    assert made.run({"LEFT": x, "RIGHT": x}, ["TOTAL"])["TOTAL"].sum() == 6  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["half", "2", "-0.5"])
def test_a_fraction_lies_between_0_and_1(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--backend-config.gpu-memory-fraction: '{text}' is not a number from 0 to 1"):
        memory(context(backend_config={"gpu-memory-fraction": text}))


def test_version_1_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    check_version(context(backend_config={"version": "2"}))
    assert not caplog.text
    check_version(context(backend_config={"version": "1"}))
    assert "tensorflow,version=1 has no effect" in caplog.text


def options(placement: Placement = ON_GPU, level: int | None = None, **accelerators: Any) -> Any:
    made = import_runtime("tests").v1.ConfigProto()
    graph = None if level is None else Graph(level)
    policy = OptimizationPolicy(graph=graph, execution_accelerators=ExecutionAccelerators(**accelerators))
    optimise(made, ModelConfig(name="m", optimization=policy), placement)
    return made


@pytest.mark.parametrize("level, jit", [(None, 0), (0, 0), (-1, -1), (1, 1), (2, 2), (9, 2)])
def test_graph_levels_are_those_of_xla(level: int | None, jit: int) -> None:
    assert options(level=level).graph_options.optimizer_options.global_jit_level == jit


def test_mixed_precision_is_for_gpus(caplog: pytest.LogCaptureFixture) -> None:
    mixed = (Accelerator("auto_mixed_precision"),)
    assert options(gpu_execution_accelerator=mixed).graph_options.rewrite_options.auto_mixed_precision == 1
    assert not caplog.text
    assert options(ON_CPU, gpu_execution_accelerator=mixed).graph_options.rewrite_options.auto_mixed_precision == 0
    assert "model 'm': auto_mixed_precision has no effect on instance 'm_0'" in caplog.text


@pytest.mark.parametrize(
    "accelerators, words",
    [
        ({"cpu_execution_accelerator": (Accelerator("openvino"),)}, "cpu_execution_accelerator: .*leave it out"),
        ({"gpu_execution_accelerator": (Accelerator("tensorrt"),)}, r"gpu_execution_accelerator\[0\].name: .*backend tensorrt"),
        ({"gpu_execution_accelerator": (Accelerator("magic"),)}, "unknown accelerator 'magic' .*auto_mixed_precision"),
    ],
)
def test_accelerators_that_are_not_there_are_refused(accelerators: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"model 'm': optimization.execution_accelerators.*{words}"):
        options(**accelerators)


def test_devices_have_tensorflow_s_names() -> None:
    places = [ON_CPU, ON_GPU, Placement("m_0", InstanceKind.KIND_MODEL)]
    assert [device_name(place) for place in places] == ["/cpu:0", "/gpu:1", None]


def test_a_gpu_that_is_not_there_is_an_error_and_no_fallback(models: Path, tmp_path: Path) -> None:
    case = ModelCase(models / "add_sub.graphdef", ModelConfig(name="m"), GRAPHDEF_FILE)
    placed = evolve(case.context(tmp_path), placements=(ON_GPU,))
    with pytest.raises(ModelError, match=r"model 'm': instance 'm_0' is placed on GPU 1, but .*KIND_CPU"):
        TensorFlowBackend().load(placed)


@pytest.mark.parametrize("there, words", [(0, "finds no GPU;"), (1, "finds 1 GPU;")])
def test_missing_gpus_are_counted(there: int, words: str) -> None:
    class Built:
        class test:
            is_built_with_cuda = staticmethod(lambda: True)

        class config:
            list_physical_devices = staticmethod(lambda kind: ["gpu"] * there)

    with pytest.raises(ModelError, match=words):
        check_device(Built, "m", ON_GPU)
    check_device(Built, "m", ON_CPU)


def test_functions_and_branches_are_followed() -> None:
    runtime = import_runtime("tests")
    tf = runtime.tf

    @tf.function  # type: ignore[untyped-decorator]
    def inner(x: Any, variable: Any) -> Any:
        return tf.cond(x > 0, lambda: variable.assign_add(x), lambda: x)

    graph = tf.Graph()
    with graph.as_default():
        variable = runtime.v1.get_variable("v", initializer=1.0, use_resource=True)
        x = runtime.v1.placeholder(tf.float32, [], name="x")
        tf.identity(inner(x, variable), name="writes")
        tf.identity(variable + x, name="reads")
    graph_def = graph.as_graph_def()
    assert keeps_state(graph_def, ["writes:0"])
    assert not keeps_state(graph_def, ["reads:0"])
    assert "x" in {node.name for node in reachable(graph_def, ["reads:0"])}


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    folder, tf = tmp_path_factory.mktemp("operation"), import_runtime("tests").tf
    (folder / "operation.cc").write_text(OPERATION)
    flags = [*tf.sysconfig.get_compile_flags(), *tf.sysconfig.get_link_flags()]
    made = folder / "liboperation.so"
    subprocess.run([compiler, "-shared", "-fPIC", "operation.cc", "-o", str(made), *flags], cwd=folder, check=True)
    return made


def test_a_library_brings_operations(library: Path, models: Path, tmp_path: Path) -> None:
    content = (models / "identity_fp32.graphdef").read_bytes()
    graph = import_runtime("tests").v1.GraphDef.FromString(content)
    node = next(node for node in graph.node if node.op == "Identity")
    node.op = "MooragePass"
    node.attr.clear()
    operations = ModelOperations(op_library_filename=("liboperation.so",))
    (tmp_path / "graph").write_bytes(graph.SerializeToString())
    case = ModelCase(tmp_path / "graph", ModelConfig(name="m", model_operations=operations), GRAPHDEF_FILE)
    for attempt in ("one", "two"):
        placed = case.context(tmp_path / attempt)
        shutil.copyfile(library, placed.model_path / "liboperation.so")
        made = TensorFlowBackend().load(placed).instance(ON_CPU)
        os.truncate(placed.model_path / "liboperation.so", 0)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(made.run({"X": x}, ["Y"])["Y"], x)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "content, words", [(None, "there is no library 'lib.so'"), (b"no library", "'lib.so' cannot be loaded")]
)
def test_a_library_that_cannot_be_loaded_is_named(content: bytes | None, words: str, models: Path, tmp_path: Path) -> None:
    operations = ModelOperations(op_library_filename=("lib.so",))
    case = ModelCase(models / "add_sub.graphdef", ModelConfig(name="m", model_operations=operations), GRAPHDEF_FILE)
    placed = case.context(tmp_path)
    if content:
        (placed.version_path / "lib.so").write_bytes(content)
    with pytest.raises(ConfigError, match=rf"model 'm': model_operations\.op_library_filename\[0\]: {words}"):
        TensorFlowBackend().load(placed)


@pytest.mark.heavy
def test_nothing_is_printed_and_the_environment_stays() -> None:
    code = """
import logging, os, sys
before = dict(os.environ)
from moorage_tensorflow.plugin import backends
assert "tensorflow" not in sys.modules
from moorage_tensorflow.runtime import import_runtime
tf = import_runtime("m").tf
assert not any(name.startswith(("TF_CPP_", "TF_OVERRIDE_")) for name in os.environ) and not logging.root.handlers
assert before.items() <= os.environ.items()
assert "keras" not in sys.modules
graph = tf.Graph()
with graph.as_default():
    x = tf.compat.v1.placeholder(tf.float32, [None])
    y = tf.gather(x, [9])
    try:
        tf.compat.v1.Session().run(y, {x: [1.0]})
    except tf.errors.InvalidArgumentError:
        pass
assert not [finder for finder in sys.meta_path if "moorage_tensorflow" in type(finder).__module__]
"""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TF_")}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
