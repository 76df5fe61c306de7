"""What the tests of this plugin share: simulated GPUs, and plans for them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cuda.bindings
import pytest
from attrs import evolve
from fake_cuda import FakeCuda, FakeDriver
from fake_tensorrt import FakeTensorRt, plan

from moorage.backend import BatchInstance, LoadContext, LoadedModel, Placement
from moorage.config.schema import InstanceKind, ModelConfig, Parameter
from moorage_tensorrt import driver
from moorage_tensorrt.backend import TensorRtBackend

GPU_0 = Placement("m_0_gpu0", InstanceKind.KIND_GPU, 0)
GPU_1 = Placement("m_0_gpu1", InstanceKind.KIND_GPU, 1)


class Simulation:
    """A machine with two GPUs, and TensorRT."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cuda = FakeCuda()
        self.trt = FakeTensorRt(self.cuda)
        self.driver = FakeDriver()
        self._patch = monkeypatch
        monkeypatch.setitem(sys.modules, "tensorrt", self.trt)
        monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", self.cuda)
        monkeypatch.setattr(cuda.bindings, "runtime", self.cuda, raising=False)
        self.load_driver(self.driver)

    def load_driver(self, found: FakeDriver | OSError) -> None:
        """Have libcuda be this, or fail to load so."""

        def load(name: str) -> FakeDriver:
            if isinstance(found, OSError):
                raise found
            return found

        fake = SimpleNamespace(CDLL=load, c_int=ctypes.c_int, byref=ctypes.byref)
        self._patch.setattr(driver, "ctypes", fake)

    def only(self, module: str) -> None:
        """TensorRT is installed under this name alone."""
        self._patch.setitem(sys.modules, "tensorrt", None)
        self._patch.setitem(sys.modules, module, self.trt)


@pytest.fixture
def simulation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulation]:
    made = Simulation(monkeypatch)
    yield made
    assert not made.cuda.streams, "streams were not given back"
    assert not made.cuda.blocks, "memory of the GPUs was not given back"


def tensor(name: str, mode: str, dtype: str, shape: Sequence[int], **more: str) -> Mapping[str, Any]:
    """A tensor of a plan."""
    return {"name": name, "mode": mode, "dtype": dtype, "shape": list(shape), **more}


def add_sub(most: int = 8, **more: Any) -> bytes:
    """A plan that adds and subtracts rows of three numbers, `most` rows at once."""
    tensors = [tensor(name, "INPUT", "FLOAT", (-1, 3)) for name in ("LEFT", "RIGHT")]
    tensors += [tensor(name, "OUTPUT", "FLOAT", (-1, 3)) for name in ("TOTAL", "GAP")]
    rows = [[1, 3], [most // 2 or 1, 3], [most, 3]]
    return plan("add_sub", tensors, **{"profiles": [{"LEFT": rows, "RIGHT": rows}], **more})


def identity(dtype: str) -> bytes:
    """A plan that gives what it gets."""
    sizes = [[1, 1], [1, 8], [64, 2**20]]
    tensors = [tensor("X", "INPUT", dtype, (-1, -1)), tensor("Y", "OUTPUT", dtype, (-1, -1))]
    return plan("identity", tensors, [{"X": sizes}])


Load = Callable[..., LoadedModel]


@pytest.fixture
def context(tmp_path: Path) -> Callable[..., LoadContext]:
    """A context for a plan (its bytes, or a mapping of file names to bytes), with parameters of the model."""

    def context(
        content: bytes | Mapping[str, bytes] = b"",
        places: Sequence[Placement] = (GPU_0,),
        config: ModelConfig | None = None,
        server: Mapping[str, str] | None = None,
        filenames: Mapping[tuple[InstanceKind, int], str] | None = None,
        **parameters: str,
    ) -> LoadContext:
        for name, data in ({"model.plan": content} if isinstance(content, bytes) else content).items():
            (tmp_path / name).write_bytes(data)
        given = evolve(config or ModelConfig(), name="m", parameters={key: Parameter(text) for key, text in parameters.items()})
        first = next(iter(filenames.values())) if filenames else "model.plan"
        return LoadContext("m", 1, given, tmp_path, tmp_path, first, tuple(places), server or {}, filenames or {})

    return context


@pytest.fixture
def load(context: Callable[..., LoadContext], simulation: Simulation) -> Iterator[Load]:
    """As `context`, and the model, which is closed at the end."""
    loaded: list[LoadedModel] = []

    def load(*args: Any, **settings: Any) -> LoadedModel:
        loaded.append(TensorRtBackend().load(context(*args, **settings)))
        return loaded[-1]

    yield load
    for model in loaded:
        model.close()


@pytest.fixture
def instance(load: Load) -> Iterator[Callable[..., BatchInstance]]:
    """As `load`, and an instance of the model at its first place, which is closed at the end."""
    made: list[BatchInstance] = []

    def instance(*args: Any, **settings: Any) -> BatchInstance:
        place = settings.get("places", (GPU_0,))[0]
        found = load(*args, **settings).instance(place)
        assert isinstance(found, BatchInstance)
        made.append(found)
        return found

    yield instance
    for one in made:
        one.close()
