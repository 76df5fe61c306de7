"""Parameters, threads, devices, and what is said when PyTorch is not there."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from moorage.backend import LoadContext, Placement, VersionFiles
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage.errors import ConfigError, ModelError, NotFound, PluginError
from moorage_torchscript.backend import TorchBackend, read
from moorage_torchscript.devices import device_of
from moorage_torchscript.faults import load_error, missing_library, run_error
from moorage_torchscript.options import Options, options_of
from moorage_torchscript.plugin import backends, discover_model
from moorage_torchscript.running import Running
from moorage_torchscript.runtime import ProcessSettings

CPU = torch.device("cpu")
GPU_1 = Placement("m", InstanceKind.KIND_GPU, 1)
X = 'input { name: "X" data_type: TYPE_FP32 dims: [ -1 ] } output { name: "Y" data_type: TYPE_FP32 dims: [ -1 ] }'


def context(tmp_path: Path, instances: int = 1, backend_config: Any = None, **parameters: Any) -> LoadContext:
    config = ModelConfig(name="m", parameters={name: Parameter(value) for name, value in parameters.items()})
    places = (Placement("m", InstanceKind.KIND_CPU),) * instances
    return LoadContext("m", 1, config, tmp_path, tmp_path, "model.pt", places, backend_config or {})


def options(tmp_path: Path, script: bool = True, **settings: Any) -> Options:
    return options_of(context(tmp_path, **settings), script=script)


def test_what_is_not_set_is_as_in_triton(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0))
    assert options(tmp_path) == Options(intra_op_threads=cores)
    assert options(tmp_path, instances=4 * cores).intra_op_threads == 1


def test_every_parameter_is_read(tmp_path: Path) -> None:
    found = options(
        tmp_path,
        INFERENCE_MODE="false",
        DISABLE_OPTIMIZED_EXECUTION="true",
        DISABLE_CUDNN="1",
        ENABLE_CACHE_CLEANING="true",
        ENABLE_WEIGHT_SHARING="true",
        ENABLE_JIT_PROFILING="false",
        ENABLE_JIT_EXECUTOR="false",
        ENABLE_TENSOR_FUSER="true",
        INTRA_OP_THREAD_COUNT="3",
        INTER_OP_THREAD_COUNT="2",
    )
    assert found == Options(False, False, False, True, True, False, False, True, 3, 2)


def test_older_names_of_the_threads(tmp_path: Path) -> None:
    found = options(tmp_path, NUM_THREADS="5", NUM_INTEROP_THREADS="6")
    assert (found.intra_op_threads, found.inter_op_threads) == (5, 6)
    assert options(tmp_path, NUM_THREADS="5", INTRA_OP_THREAD_COUNT="4").intra_op_threads == 4
    assert options(tmp_path, INTER_OP_THREAD_COUNT="-1").inter_op_threads == 0


def test_the_model_s_own_parameter_beats_the_command_line(tmp_path: Path) -> None:
    command_line = {"INTRA_OP_THREAD_COUNT": "7", "INFERENCE_MODE": "false"}
    found = options(tmp_path, backend_config=command_line, INTRA_OP_THREAD_COUNT="3")
    assert (found.intra_op_threads, found.inference_mode) == (3, False)


@pytest.mark.parametrize("name, text", [("INFERENCE_MODE", "maybe"), ("INTRA_OP_THREAD_COUNT", "many"), ("NUM_THREADS", "1.5")])
def test_a_value_that_is_none_names_the_parameter(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=rf"parameters\.{name}: '{text}' is not"):
        options(tmp_path, True, **{name: text})


@pytest.mark.parametrize(
    "name, script, reason",
    [
        ("ENABLE_NVFUSER", True, "PyTorch has no NVFuser any more"),
        ("TORCH_COMPILE_OPTIONAL_PARAMETERS", True, "backend 'python'"),
        ("ENABLE_JIT_PROFILING", False, "it is for TorchScript models"),
    ],
)
def test_what_does_nothing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, script: bool, reason: str
) -> None:
    with caplog.at_level(logging.WARNING):
        options(tmp_path, script, **{name: "true"})
    assert f"model 'm': parameter {name} does nothing: " in caplog.text
    assert reason in caplog.text


@pytest.fixture
def on_own_thread() -> Callable[[Callable[[], object]], object]:
    """Runs something on a thread of its own, as instances are, so that nothing stays set."""

    def run(work: Callable[[], object]) -> object:
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(work()))
        thread.start()
        thread.join()
        return found[0]

    return run


def test_threads_and_optimizations_are_those_of_the_instance_s_thread(on_own_thread: Callable[..., object]) -> None:
    before = torch.get_num_threads()

    def work() -> object:
        Running(torch, Options(intra_op_threads=before + 3, optimized_execution=False), CPU).enter_thread()
        return torch.get_num_threads(), torch._C._get_graph_executor_optimize()

    assert on_own_thread(work) == (before + 3, False)
    assert (torch.get_num_threads(), torch._C._get_graph_executor_optimize()) == (before, True)


@pytest.mark.parametrize("mode", [True, False])
def test_inference_mode_is_around_each_run(mode: bool) -> None:
    with Running(torch, Options(inference_mode=mode), CPU).guard():
        assert torch.is_inference_mode_enabled() is mode
        assert not torch.is_grad_enabled()


def test_the_executor_is_switched_before_each_run() -> None:
    native = torch._C
    kept = (native._jit_set_profiling_executor(True), native._jit_set_profiling_mode(True), native._jit_texpr_fuser_enabled())
    try:
        before = Running(torch, Options(jit_executor=False, jit_profiling=False, tensor_fuser=False), CPU).before
        assert before is not None
        before()
        assert not native._jit_texpr_fuser_enabled()
        assert (native._jit_set_profiling_executor(True), native._jit_set_profiling_mode(True)) == (False, False)
    finally:
        native._jit_set_profiling_executor(kept[0])
        native._jit_set_profiling_mode(kept[1])
        native._jit_set_texpr_fuser_enabled(kept[2])
    assert Running(torch, Options(), CPU).before is None


@pytest.mark.parametrize("parameters", [{}, {"INFERENCE_MODE": "false"}, {"DISABLE_OPTIMIZED_EXECUTION": "true"}])
def test_every_mode_computes_the_same(instance: Callable[..., Any], parameters: Any) -> None:
    threads = torch.get_num_threads()
    try:
        made = instance("identity.pt", X, INTRA_OP_THREAD_COUNT=str(threads), **parameters)
        assert made.run({"X": np.ones(2, np.float32)}, ["Y"])["Y"].tolist() == [1, 1]
    finally:
        torch._C._set_graph_executor_optimize(True)


class FakeThreads:
    """Threads that can be set once, as PyTorch's."""

    def __init__(self, *, used: bool = False) -> None:
        self.count, self._fixed = 8, used

    def set_num_interop_threads(self, count: int) -> None:
        if self._fixed:
            raise RuntimeError("cannot set number of interop threads after parallel work has started")
        self.count, self._fixed = count, True

    def get_num_interop_threads(self) -> int:
        return self.count


def test_the_first_number_of_inter_op_threads_counts(caplog: pytest.LogCaptureFixture) -> None:
    settings, threads = ProcessSettings(), FakeThreads()
    with caplog.at_level(logging.WARNING):
        for count in (0, 2, 2, 0):
            settings.use_inter_op_threads(threads, count, "m")
        assert (threads.count, caplog.text) == (2, "")
        settings.use_inter_op_threads(threads, 3, "other")
    assert threads.count == 2
    assert "model 'other': INTER_OP_THREAD_COUNT 3 is not used" in caplog.text


def test_inter_op_threads_that_are_in_use_already(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ProcessSettings().use_inter_op_threads(FakeThreads(used=True), 3, "m")
    assert "it is 8" in caplog.text


def fake_torch(*, built: bool = True, error: str = "", gpus: int = 0) -> Any:
    def init() -> None:
        if error:
            raise RuntimeError(error)

    cuda = SimpleNamespace(init=init, device_count=lambda: gpus)
    backends = SimpleNamespace(cuda=SimpleNamespace(is_built=lambda: built))
    version = SimpleNamespace(cuda="13.0")
    return SimpleNamespace(cuda=cuda, backends=backends, version=version, __version__="2.99", device=lambda *where: where)


@pytest.mark.parametrize(
    "torch_there, words",
    [
        (fake_torch(built=False), r"PyTorch \(2\.99\) was built without CUDA: install a build with it"),
        (fake_torch(error="no driver\nmore"), r"CUDA cannot start \(no driver\).*driver that suits CUDA 13\.0"),
        (fake_torch(gpus=1), r"PyTorch sees 1 GPU\(s\).*CUDA_VISIBLE_DEVICES"),
    ],
)
def test_a_gpu_that_cannot_be_used_says_what_is_missing(torch_there: Any, words: str) -> None:
    with pytest.raises(ModelError, match=f"model 'm' is to run on GPU 1 .*{words}.*KIND_CPU"):
        device_of(torch_there, GPU_1, "m")


def test_devices() -> None:
    assert device_of(fake_torch(gpus=2), GPU_1, "m") == ("cuda", 1)
    assert device_of(torch, Placement("m", InstanceKind.KIND_MODEL), "m") == CPU


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_nothing_falls_back_to_the_cpu(load: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match="model 'identity' is to run on GPU 1"):
        load("identity.pt", X).instance(GPU_1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("file", ["identity.pt", "identity_fp32.pt2"])
def test_runs_on_a_gpu(load: Callable[..., Any], file: str) -> None:
    made = load(file, X if file.endswith(".pt") else "").instance(Placement("m", InstanceKind.KIND_GPU, 0))
    array = np.ones((2, 2), np.float32)
    name = "Y" if file.endswith(".pt") else "OUTPUT__0"
    np.testing.assert_array_equal(made.run({"X": array}, [name])[name], array)


def test_kind_model_leaves_the_devices_to_the_file(load: Callable[..., Any]) -> None:
    made = load("blur.pt", X.replace("X", "IMAGE").replace("-1", "1, -1, -1")).instance(Placement("m", InstanceKind.KIND_MODEL))
    assert made.run({"IMAGE": np.ones((1, 1, 2, 2), np.float32)}, ["Y"])["Y"].shape == (1, 1, 2, 2)


def test_without_pytorch_the_error_says_what_to_install(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(PluginError, match=r"model 'identity': the backend 'pytorch' needs PyTorch.*`pip install torch`"):
        load("identity.pt", X)


def test_a_file_that_is_no_model_needs_no_pytorch(load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        ModelError, match=r"model 'state_dict' version 1: .*model\.pt is a file of torch\.save.*load_state_dict"
    ):
        load("state_dict.pt", X)


def test_a_folder_or_nothing_instead_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"model 'm' version 1: no file .*model\.pt; put model\.pt or model\.pt2 there"):
        read(context(tmp_path))
    (tmp_path / "model.pt").mkdir()
    with pytest.raises(ModelError, match="is a folder"):
        read(context(tmp_path))


@pytest.mark.parametrize(
    "names, found",
    [
        ({"model.pt"}, ("pytorch_libtorch", "model.pt")),
        ({"model.pt2"}, ("torch_aoti", "model.pt2")),
        ({"model.pt", "model.pt2"}, ("pytorch_libtorch", "model.pt")),
        ({"model.pth"}, None),
        ({"x/model.pt"}, None),
    ],
)
def test_discovers_by_name(names: set[str], found: Any) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match and (match.platform, match.default_model_filename)) == found


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert (backend, backend.name) == (TorchBackend, "pytorch")


def test_importing_the_plugin_imports_no_framework() -> None:
    code = "import sys, moorage_torchscript.plugin; assert 'torch' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_errors_of_pytorch_lose_their_frames() -> None:
    error = RuntimeError("mat1 and mat2 shapes cannot be multiplied\nException raised from meta at x.cpp\nframe #0: c10")
    assert str(run_error(error, "m", {})) == (
        "model 'm' cannot compute with these inputs: mat1 and mat2 shapes cannot be multiplied (given no inputs)"
    )


def test_operators_of_another_library_say_what_to_install() -> None:
    error = RuntimeError("\nUnknown builtin op: torchvision::nms.\nCould not find any similar ops")
    assert missing_library(error) == "torchvision"
    assert "pip install torchvision" in str(load_error(error, "m", 1, Path("model.pt")))
    other = RuntimeError("Unknown builtin op: mine::op.")
    assert missing_library(other) == ""
    assert "the operator mine::op is not known here: name the library that has it in model_operations {" in str(
        load_error(other, "m", 1, Path("model.pt"))
    )
