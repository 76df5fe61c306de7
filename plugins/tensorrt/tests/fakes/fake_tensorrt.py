"""A TensorRT that runs on `fake_cuda`. Its plans are JSON behind a header.

test_tensorrt_bindings.py holds it to the real one.
"""

from __future__ import annotations

import ctypes
import enum
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from fake_cuda import FakeCuda

HEADER = b"ftrt" + bytes(60)
NUMPY = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "UINT8": np.uint8,
    "INT32": np.int32,
    "INT64": np.int64,
    "BOOL": np.bool_,
}
DataType = enum.Enum("DataType", "FLOAT HALF BF16 INT8 INT32 INT64 BOOL UINT8 FP8 INT4 FP4 E8M0")
TensorIOMode = enum.Enum("TensorIOMode", "NONE INPUT OUTPUT")
TensorLocation = enum.Enum("TensorLocation", "DEVICE HOST")
ExecutionContextAllocationStrategy = enum.Enum("ExecutionContextAllocationStrategy", "STATIC ON_PROFILE_CHANGE USER_MANAGED")
Program = Callable[..., tuple[np.ndarray, ...]]
PROGRAMS: Mapping[str, Program] = {
    "add_sub": lambda left, right: (left + right, left - right),
    "identity": lambda given: (given,),
    "nonzero": lambda given: (np.flatnonzero(given).astype(np.int64),),
    "grid": lambda size: (np.arange(np.prod(size), dtype=np.float32).reshape(size), np.array(size, np.int64)),
}


def plan(
    program: str, tensors: Sequence[Mapping[str, Any]], profiles: Sequence[Mapping[str, Any]] = ({},), **more: Any
) -> bytes:
    """The bytes of a plan. Each tensor has `name`, `mode`, `dtype`, `shape`, and may have `location` and `format`."""
    return HEADER + json.dumps({"program": program, "tensors": tensors, "profiles": profiles, **more}).encode()


class ILogger:
    class Severity(enum.Enum):
        INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)

    def __init__(self) -> None:
        pass

    def log(self, severity: Any, msg: str) -> None:
        raise NotImplementedError


class IOutputAllocator:
    def __init__(self) -> None:
        pass


class FakeTensorRt:
    """The module. `alive` counts what is not dropped yet."""

    __version__ = "11.4.0.106"
    DataType, TensorIOMode, TensorLocation = DataType, TensorIOMode, TensorLocation
    ExecutionContextAllocationStrategy = ExecutionContextAllocationStrategy
    ILogger, IOutputAllocator = ILogger, IOutputAllocator

    def __init__(self, cuda: FakeCuda) -> None:
        self.cuda = cuda
        self.engines: list[dict[str, Any]] = []
        self.libraries = 0

    def Runtime(self, logger: Any) -> Runtime:
        return Runtime(logger, self)

    def init_libnvinfer_plugins(self, logger: Any, namespace: str) -> bool:
        self.libraries += 1
        return True


class Runtime:
    def __init__(self, logger: ILogger, module: FakeTensorRt) -> None:
        self._logger, self._module = logger, module
        self._host_code, self._dla = False, -1

    @property
    def engine_host_code_allowed(self) -> bool:
        return self._host_code

    @engine_host_code_allowed.setter
    def engine_host_code_allowed(self, allowed: bool) -> None:
        self._host_code = allowed

    @property
    def num_DLA_cores(self) -> int:
        return 2

    @property
    def DLA_core(self) -> int:
        return self._dla

    @DLA_core.setter
    def DLA_core(self, core: int) -> None:
        self._dla = core

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        try:
            content = json.loads(serialized_engine[len(HEADER) :])
        except ValueError:
            self._logger.log(ILogger.Severity.ERROR, "Magic tag does not match")
            return None
        if content.get("compatible") and not self._host_code:
            self._logger.log(ILogger.Severity.ERROR, "host code is not allowed")
            return None
        device = self._module.cuda.device
        self._module.engines.append({**content, "device": device, "dla": self._dla})
        return ICudaEngine(content, self._logger, self._module, device)


class ICudaEngine:
    def __init__(self, content: Any, logger: ILogger, module: FakeTensorRt, device: int) -> None:
        self._content, self._logger, self._module, self._device = content, logger, module, device
        self._tensors = {one["name"]: one for one in content["tensors"]}

    @property
    def num_io_tensors(self) -> int:
        return len(self._tensors)

    @property
    def num_optimization_profiles(self) -> int:
        return len(self._content["profiles"])

    def get_tensor_name(self, index: int) -> str:
        return str(list(self._tensors)[index])

    def get_tensor_mode(self, name: str) -> Any:
        return TensorIOMode[self._tensors[name]["mode"]]

    def get_tensor_dtype(self, name: str) -> Any:
        return DataType[self._tensors[name]["dtype"]]

    def get_tensor_format_desc(self, name: str) -> str:
        return str(self._tensors[name].get("format", "Row major linear format"))

    def get_tensor_location(self, name: str) -> Any:
        return TensorLocation[self._tensors[name].get("location", "DEVICE")]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._tensors[name]["shape"])

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[tuple[int, ...]]:
        shape = self._tensors[name]["shape"]
        return [tuple(one) for one in self._content["profiles"][profile_index].get(name, [shape] * 3)]

    def get_tensor_profile_values(self, name: int, profile_index: str) -> list[list[int]]:
        """The names are those of the real one, which are the wrong way round."""
        found: list[list[int]] = self._content["profiles"][name].get(profile_index, [])
        return found

    def create_execution_context(self, strategy: Any) -> IExecutionContext | None:
        assert strategy in ExecutionContextAllocationStrategy
        if self._content.get("no_context"):
            self._logger.log(ILogger.Severity.ERROR, "out of memory")
            return None
        return IExecutionContext(self, strategy)


class IExecutionContext:
    def __init__(self, engine: ICudaEngine, strategy: Any) -> None:
        self._engine, self._module, self.strategy = engine, engine._module, strategy
        self._profile = 0
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._addresses: dict[str, int] = {}
        self._allocators: dict[str, Any] = {}

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        assert stream_handle in self._module.cuda.streams
        self._profile = profile_index
        return profile_index < self._engine.num_optimization_profiles

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = tuple(shape)
        return not self._engine._content.get("refuses_shapes")

    def infer_shapes(self) -> list[str]:
        return [name for name in self._names("INPUT") if name not in self._shapes]

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        if name in self._shapes:
            return self._shapes[name]
        return self._results([self._like(one) for one in self._names("INPUT")])[name].shape if not self._open(name) else (-1,)

    def set_tensor_address(self, name: str, memory: int) -> bool:
        assert memory
        self._addresses[name] = memory
        return True

    def set_output_allocator(self, name: str, output_allocator: Any) -> bool:
        self._allocators[name] = output_allocator
        return True

    def execute_async_v3(self, stream_handle: int) -> bool:
        cuda = self._module.cuda
        assert cuda.device == self._engine._device, "the current device is another than the engine's"
        if self._engine._content.get("fails"):
            self._engine._logger.log(ILogger.Severity.ERROR, "Cask convolution execution")
            return False
        if self._allocators:  # sizes are known on the device only; the real one waits inside, too
            cuda.cudaStreamSynchronize(stream_handle)
            self._compute(stream_handle)
        else:
            cuda.work[stream_handle].append(lambda: self._compute(stream_handle))
        return True

    def _compute(self, stream: int) -> None:
        results = self._results([self._read(name) for name in self._names("INPUT")])
        for name, array in results.items():
            if name in self._allocators:
                allocator = self._allocators[name]
                self._addresses[name] = allocator.reallocate_output_async(name, 0, array.nbytes, 256, stream)
                allocator.notify_shape(name, array.shape)
            self._write(name, np.ascontiguousarray(array, dtype=self._dtype(name)))

    def _results(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return dict(zip(self._names("OUTPUT"), PROGRAMS[self._engine._content["program"]](*inputs), strict=True))

    def _names(self, mode: str) -> list[str]:
        return [one["name"] for one in self._engine._content["tensors"] if one["mode"] == mode]

    def _open(self, name: str) -> bool:
        return bool(self._engine._content["program"] == "nonzero")

    def _dtype(self, name: str) -> np.dtype:
        dtype: np.dtype = np.dtype(NUMPY[self._engine._tensors[name]["dtype"]])
        return dtype

    def _on_host(self, name: str) -> bool:
        return self._engine.get_tensor_location(name) is TensorLocation.HOST

    def _like(self, name: str) -> np.ndarray:
        """The values of a shape, of other inputs nothing but a shape."""
        return self._read(name) if self._on_host(name) else np.zeros(self._shapes[name], self._dtype(name))

    def _read(self, name: str) -> np.ndarray:
        shape, dtype = self._shapes[name], self._dtype(name)
        if not self._on_host(name):
            return self._module.cuda.array(self._addresses[name], shape, dtype).copy()
        count = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(self._addresses[name], count), dtype).reshape(shape)

    def _write(self, name: str, array: np.ndarray) -> None:
        if not self._on_host(name):
            self._module.cuda.check(self._addresses[name], array.nbytes)
        ctypes.memmove(self._addresses[name], array.ctypes.data, array.nbytes)
