"""Finding plans, refusing what is none, and what is said where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_cuda import FakeDriver
from simulated_gpus import GPU_0, GPU_1, Simulation, add_sub

from moorage.backend import Placement, VersionFiles
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError, MoorageError, NotFound
from moorage.server import Server
from moorage.testing import RepositoryBuilder
from moorage_tensorrt import driver
from moorage_tensorrt.backend import TensorRtBackend
from moorage_tensorrt.plan import check_plan
from moorage_tensorrt.plugin import backends, discover_model

REAL = Path(__file__).parent / "plans" / "add_sub_rtx.plan"
ON_CPU = Placement("m_0", InstanceKind.KIND_CPU)
NO_GPU = driver.trouble()
Context = Callable[..., Any]


def test_a_real_plan_is_one() -> None:
    assert check_plan("m", REAL) is True


def test_a_plan_of_tensorrt_is_told_from_one_for_rtx(tmp_path: Path) -> None:
    (tmp_path / "model.plan").write_bytes(add_sub())
    assert check_plan("m", tmp_path / "model.plan") is False


@pytest.mark.parametrize(
    "content, told",
    [
        (b"", "is empty"),
        (b"no plan at all", "is no TensorRT plan"),
        (b"\x08\x08\x12\x07moorage" * 30, "perhaps an ONNX model"),
        (b"PK\x03\x04" * 30, "an archive"),
        (b"version https://git-lfs.github.com/spec/v1\n" * 3, "a Git LFS pointer"),
        (REAL.read_bytes()[:40], "is not a whole plan: it has 40 bytes"),
        (REAL.read_bytes()[:-1], "is not a whole plan"),
        (REAL.read_bytes() + b"x", "is not a whole plan"),
        (b"ftrt", "is not a whole plan"),
    ],
)
def test_what_is_no_plan_is_refused_without_a_gpu(context: Context, content: bytes, told: str) -> None:
    with pytest.raises(ModelError, match=rf"model 'm': .*model\.plan .*{told}"):
        TensorRtBackend().load(context(content))


def test_a_plan_that_is_not_there_is_not_found(context: Context) -> None:
    with pytest.raises(NotFound, match=r"model 'm': no file .*model\.plan"):
        TensorRtBackend().load(context({}))


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_a_machine_without_a_gpu_says_so(context: Context) -> None:
    with pytest.raises(ModelError, match=r"model 'm': TensorRT needs an NVIDIA GPU, but .*install the NVIDIA driver"):
        TensorRtBackend().load(context(REAL.read_bytes()))


@pytest.mark.skipif(not NO_GPU, reason="there is a GPU")
def test_a_server_without_a_gpu_serves_the_rest_and_says_so(tmp_path: Path) -> None:
    repository = RepositoryBuilder(tmp_path / "models")
    repository.add("adder", {"1/model.plan": REAL})
    told = r"model 'adder': TensorRT runs on NVIDIA GPUs only.*install the NVIDIA driver"
    with (
        Server(model_repository=repository.path, model_control_mode="explicit") as server,
        pytest.raises(MoorageError, match=told),
    ):
        server.load("adder")


@pytest.mark.parametrize(
    "found, told",
    [
        (OSError("libcuda.so.1: cannot open shared object file"), "there is no NVIDIA driver on this machine .libcuda"),
        (FakeDriver(init=100), "the NVIDIA driver shows none to this process"),
        (FakeDriver(devices=0), "the NVIDIA driver shows none to this process"),
        (FakeDriver(init=999), r"the NVIDIA driver cannot be started \(CUDA error 999\)"),
        (FakeDriver(count=3), r"the NVIDIA driver cannot be started \(CUDA error 3\)"),
    ],
)
def test_each_trouble_with_the_driver_is_told(simulation: Simulation, context: Context, found: Any, told: str) -> None:
    simulation.load_driver(found)
    with pytest.raises(ModelError, match=f"model 'm': TensorRT needs an NVIDIA GPU, but {told}"):
        TensorRtBackend().load(context(add_sub()))
    with pytest.raises(ModelError, match=f"model 'm': TensorRT runs on NVIDIA GPUs only, and .*KIND_CPU: {told}"):
        TensorRtBackend().load(context(add_sub(), places=(ON_CPU,)))
    assert not simulation.trt.engines


def test_an_instance_on_the_cpu_is_refused_where_there_is_a_gpu(simulation: Simulation, context: Context) -> None:
    with pytest.raises(ModelError, match=r"its instance 'm_0' is placed on KIND_CPU: write instance_group .*KIND_GPU"):
        TensorRtBackend().load(context(add_sub(), places=(GPU_0, ON_CPU)))
    with pytest.raises(ModelError, match="it has no instances"):
        TensorRtBackend().load(context(add_sub(), places=()))


def test_a_gpu_that_cuda_does_not_show_is_named(simulation: Simulation, context: Context) -> None:
    simulation.load_driver(FakeDriver(devices=1))
    with pytest.raises(ModelError, match=r"model 'm' is placed on GPU 1, but CUDA shows 1 .*CUDA_VISIBLE_DEVICES"):
        TensorRtBackend().load(context(add_sub(), places=(GPU_0, GPU_1)))


def test_plans_for_two_kinds_of_tensorrt_do_not_go_together(simulation: Simulation, context: Context) -> None:
    files = {"a.plan": add_sub(), "b.plan": REAL.read_bytes()}
    names = {(InstanceKind.KIND_GPU, 0): "a.plan", (InstanceKind.KIND_GPU, 1): "b.plan"}
    with pytest.raises(ModelError, match="some of its plans are for TensorRT, some for TensorRT for RTX"):
        TensorRtBackend().load(context(files, places=(GPU_0, GPU_1), filenames=names))


@pytest.mark.parametrize(
    "names, found", [({"model.plan"}, True), ({"other.plan"}, False), ({"model.plan/x"}, False), ({"model.onnx"}, False)]
)
def test_discovers_by_name(names: set[str], found: bool) -> None:
    match = discover_model(VersionFiles("m", frozenset(names)))
    assert (match is not None) == found
    if match:
        assert (match.backend, match.platform, match.default_model_filename) == ("tensorrt", "tensorrt_plan", "model.plan")


def test_registers_one_backend() -> None:
    (backend,) = backends()
    assert (backend.name, tuple(backend.platforms)) == ("tensorrt", ("tensorrt_plan",))


def test_importing_the_plugin_imports_no_framework() -> None:
    code = "import sys, moorage_tensorrt.plugin; assert not {'tensorrt', 'cuda.bindings'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
