from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from moorage.backend import LoadContext, Placement
from moorage.config.schema import Graph, InstanceKind, ModelConfig, OptimizationPolicy, Parameter
from moorage.errors import ConfigError, ModelError, NotFound, PluginError, RequestError
from moorage.testing import ModelCase
from moorage_onnx import backend as backend_module
from moorage_onnx.options import run_options, session_options

SHRINK: dict[str, Any] = {"memory.enable_memory_arena_shrinkage": "cpu:0"}
ON_CPU = Placement("m", InstanceKind.KIND_CPU)


def context(
    tmp_path: Path, level: int | None = None, instances: Any = 1, backend_config: Any = None, **parameters: Any
) -> LoadContext:
    optimization = OptimizationPolicy(graph=Graph(level)) if level is not None else None
    config = ModelConfig(name="m", optimization=optimization, parameters={k: Parameter(v) for k, v in parameters.items()})
    places = (ON_CPU,) * instances
    return LoadContext("m", 1, config, tmp_path, tmp_path, "model.onnx", places, backend_config or {})


def options(tmp_path: Path, **settings: Any) -> Any:
    return session_options(onnxruntime, context(tmp_path, **settings))


@pytest.mark.parametrize("level, name", [(None, "ALL"), (0, "ALL"), (-1, "BASIC"), (1, "EXTENDED"), (2, "DISABLE")])
def test_graph_levels(tmp_path: Path, level: int | None, name: str) -> None:
    assert name in options(tmp_path, level=level).graph_optimization_level.name


def test_unknown_graph_level_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"optimization\.graph\.level: unknown level 7"):
        options(tmp_path, level=7)


def test_threads_are_divided_among_the_instances(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    assert options(tmp_path / "one").intra_op_num_threads == cores
    divided = session_options(onnxruntime, context(tmp_path / "several", instances=4 * cores))
    assert divided.intra_op_num_threads == 1


def test_threads_by_parameter(tmp_path: Path) -> None:
    made = options(tmp_path, intra_op_thread_count="3", inter_op_thread_count="2", execution_mode="1")
    assert (made.intra_op_num_threads, made.inter_op_num_threads) == (3, 2)
    assert made.execution_mode == onnxruntime.ExecutionMode.ORT_PARALLEL
    assert made.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_the_model_s_own_parameter_beats_the_command_line(tmp_path: Path) -> None:
    command_line = {"intra_op_thread_count": "5", "inter_op_thread_count": "4"}
    made = options(tmp_path, backend_config=command_line, intra_op_thread_count="3")
    assert (made.intra_op_num_threads, made.inter_op_num_threads) == (3, 4)


def test_memory_switches(tmp_path: Path) -> None:
    made = options(tmp_path, enable_mem_arena="0", enable_mem_pattern="false")
    assert not made.enable_cpu_mem_arena
    assert not made.enable_mem_pattern
    assert options(tmp_path).enable_cpu_mem_arena


def test_session_entries_are_passed_on(tmp_path: Path) -> None:
    made = options(tmp_path, **{"session.intra_op.allow_spinning": "1", "session.set_denormal_as_zero": "1"})
    assert made.get_session_config_entry("session.set_denormal_as_zero") == "1"
    assert made.get_session_config_entry("session.intra_op.allow_spinning") == "1"


def test_arena_shrinkage_is_a_run_option(tmp_path: Path) -> None:
    made = run_options(onnxruntime, context(tmp_path, **SHRINK))
    assert made.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


def test_what_fails_in_a_run_is_raised_and_not_written_unless_it_is_asked_for(
    instance: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    for settings, written in (({}, False), ({"log_severity_level": "3"}, True)):
        with pytest.raises(RequestError, match="Reshape"):
            instance("reshape", **settings).run({"X": np.ones(3, np.float32)}, ["Y"])
        assert ("Reshape" in capfd.readouterr().err) == written


def test_runs_with_arena_shrinkage(instance: Callable[..., Any]) -> None:
    one = np.ones((1, 3), np.float32)
    made = instance("add_sub", **SHRINK)
    assert made.run({"LEFT": one, "RIGHT": one}, ["GAP"])["GAP"].sum() == 0


@pytest.mark.parametrize(
    "name, text",
    [
        ("intra_op_thread_count", "many"),
        ("intra_op_thread_count", "-1"),
        ("inter_op_thread_count", "1.5"),
        ("execution_mode", "fast"),
        ("execution_mode", "2"),
        ("enable_mem_arena", "perhaps"),
        ("log_severity_level", "loud"),
    ],
)
def test_a_parameter_that_makes_no_sense_is_a_config_error(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"model 'm': parameters.{name}: '{text}' is not"):
        options(tmp_path, **{name: text})


def test_a_setting_of_the_command_line_that_makes_no_sense_is_blamed_on_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model 'm': --backend-config\.intra_op_thread_count: 'many'"):
        options(tmp_path, backend_config={"intra_op_thread_count": "many"})


def test_with_one_pool_for_all_the_model_s_own_threads_are_ignored(tmp_path: Path) -> None:
    settings = {"enable-global-threadpool": "1"}
    assert not options(tmp_path, backend_config=settings, intra_op_thread_count="3").use_per_session_threads


def test_without_onnx_runtime_the_error_says_what_to_install(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(PluginError, match=r'model \'add_sub\'.*pip install "moorage-onnx\[cpu\]"'):
        load("add_sub")


def test_a_folder_without_a_model_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").mkdir()
    with pytest.raises(NotFound, match=r"model 'm' version 1: no file .*model\.onnx/model\.onnx"):
        backend_module.model_path(context(tmp_path))


def test_a_folder_may_hold_one_file_of_another_name(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").mkdir()
    (tmp_path / "model.onnx" / "encoder.onnx").touch()
    assert backend_module.model_path(context(tmp_path)).name == "encoder.onnx"


def test_instances_on_the_cpu_share_a_session(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_sessions(monkeypatch)
    model = load("add_sub", instances=3)
    for _ in range(3):
        model.instance(ON_CPU)
    assert len(made) == 1


def test_instances_have_a_session_each_if_told_so(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    made = count_sessions(monkeypatch)
    model = load("add_sub", instances=3, share_session="0")
    for _ in range(3):
        model.instance(ON_CPU)
    assert len(made) == 3


def test_an_instance_of_a_file_that_has_changed_is_refused(models: Path, tmp_path: Path) -> None:
    """With a session each, one made later would run another model than the first."""
    config = ModelConfig(name="m", parameters={"share_session": Parameter("0")})
    where = ModelCase(models / "add_sub.onnx", config, "model.onnx").context(tmp_path)
    model = backend_module.OnnxBackend().load(where)
    model.instance(ON_CPU)
    where.model_file.write_bytes((models / "conv.onnx").read_bytes())
    with pytest.raises(ModelError, match=r"model 'm' version 1: .*model\.onnx has changed since it was first read"):
        model.instance(ON_CPU)


def count_sessions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    original = onnxruntime.InferenceSession

    def make(*args: Any, **kwargs: Any) -> Any:
        made.append(original(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(onnxruntime, "InferenceSession", make)
    return made


def test_one_pool_of_threads_for_all_sessions(models: Path) -> None:
    code = f"""
import os
from pathlib import Path
from moorage.backend import LoadContext, Placement
from moorage.config.schema import InstanceKind, ModelConfig
from moorage_onnx.backend import OnnxBackend
folder = Path({str(models)!r})
settings = {{"enable-global-threadpool": "1", "intra_op_thread_count": "3", "inter_op_thread_count": "1"}}
backend = OnnxBackend()
threads = []
for _ in range(4):
    context = LoadContext("m", 1, ModelConfig(name="m"), folder, folder, "add_sub.onnx", backend_config=settings)
    keep = backend.load(context)
    threads.append(len(os.listdir("/proc/self/task")))
assert len(set(threads)) == 1, threads
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert child.returncode == 0, child.stderr


def test_importing_the_plugin_imports_no_framework() -> None:
    code = "import sys, moorage_onnx.plugin; assert 'onnxruntime' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
