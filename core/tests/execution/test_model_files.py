"""Each device may have a file of its own."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve

from moorage._execution import devices
from moorage._execution.model_files import files_by_device
from moorage._plugins import Registry
from moorage.backend import LoadContext, Placement, VersionFiles
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ConfigError, InvalidArgument

CPU, GPU = InstanceKind.KIND_CPU, InstanceKind.KIND_GPU
PLACES = (Placement("a", GPU, 0), Placement("b", GPU, 0), Placement("c", GPU, 1), Placement("d", CPU))
CAPABILITIES = {0: "7.5", 1: "9.0"}
CONFIG = ModelConfig(name="m", cc_model_filenames={"9.0": "hopper.plan", "8.0": "ampere.plan"})


@pytest.fixture
def files(tmp_path: Path) -> VersionFiles:
    names = frozenset({"model.plan", "hopper.plan"})
    for name in names:
        (tmp_path / name).touch()
    return VersionFiles("m", names, tmp_path)


def chosen(files: VersionFiles, config: ModelConfig = CONFIG, **plugins: Any) -> Any:
    registry = Registry(selectors=tuple(plugins.items()))
    return files_by_device(
        config, files, PLACES, default="model.plan", registry=registry, capability=lambda gpu: CAPABILITIES.get(gpu, "")
    )


def test_a_gpu_gets_the_file_for_its_compute_capability(files: VersionFiles) -> None:
    assert chosen(files) == {(GPU, 0): "model.plan", (GPU, 1): "hopper.plan", (CPU, 0): "model.plan"}


def test_plugins_choose_for_each_device_once(files: VersionFiles) -> None:
    asked: list[Placement] = []

    def select(config: ModelConfig, files: VersionFiles, place: Placement) -> str | None:
        asked.append(place)
        return "mine.plan" if place.kind is CPU else None

    assert chosen(files, one=select) == {(GPU, 0): "model.plan", (GPU, 1): "hopper.plan", (CPU, 0): "mine.plan"}
    assert [place.name for place in asked] == ["d", "c", "a"]


def test_plugins_that_disagree_are_an_error(files: VersionFiles) -> None:
    with pytest.raises(ConfigError, match="model 'm': plugins disagree on the file to load"):
        chosen(files, one=lambda *_: "a", other=lambda *_: "b")


def test_a_file_that_is_not_there_is_named_with_its_field(files: VersionFiles) -> None:
    config = evolve(CONFIG, cc_model_filenames={"9.0": "gone.plan"})
    with pytest.raises(InvalidArgument, match=r"'m': .* has no 'gone\.plan' .*set cc_model_filenames\[\"9\.0\"\]"):
        chosen(files, config)


def test_a_context_tells_the_file_of_a_place(tmp_path: Path) -> None:
    context = LoadContext("m", 1, CONFIG, tmp_path, tmp_path, "model.plan", filenames={(GPU, 1): "hopper.plan"})
    assert [context.file_for(place).name for place in PLACES] == ["model.plan", "model.plan", "hopper.plan", "model.plan"]


class Driver:
    """Some of libcuda: GPU 0 has compute capability 8.6."""

    def __init__(self, fails: str = "") -> None:
        self._fails = fails

    def cuInit(self, flags: int) -> int:
        return 100 if self._fails == "cuInit" else 0

    def cuDeviceGet(self, device: Any, number: int) -> int:
        return 101 if number else 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: Any) -> int:
        value._obj.value = {75: 8, 76: 6}[attribute]
        return 1 if self._fails == "cuDeviceGetAttribute" else 0


@pytest.mark.parametrize(
    "gpu, fails, wanted", [(0, "", "8.6"), (1, "", ""), (0, "cuInit", ""), (0, "cuDeviceGetAttribute", ""), (0, "library", "")]
)
def test_the_driver_tells_the_compute_capability(monkeypatch: pytest.MonkeyPatch, gpu: int, fails: str, wanted: str) -> None:
    def load(name: str) -> Driver:
        assert name == "libcuda.so.1"
        if fails == "library":
            raise OSError(name)
        return Driver(fails)

    fake = SimpleNamespace(CDLL=load, c_int=ctypes.c_int, byref=ctypes.byref)
    monkeypatch.setattr(devices, "ctypes", fake)
    assert devices.compute_capability(gpu) == wanted
