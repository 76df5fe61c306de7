"""The little of CUDA that is needed, through cuda-bindings: devices, memory, streams. Errors become ModelError here."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from moorage.config.schema import ModelPriority
from moorage.errors import ModelError, PluginError

_NON_BLOCKING = 1
"""cudaStreamNonBlocking: the stream does not wait for others."""


def import_cuda(model: str) -> ModuleType:
    """The module `cuda.bindings.runtime`. Raises PluginError that says what to install."""
    try:
        from cuda.bindings import runtime  # noqa: PLC0415 - not before a model needs it
    except ImportError as error:
        raise PluginError(
            f"model '{model}': cuda-bindings cannot be imported ({error}): `pip install cuda-bindings`"
        ) from error
    module: ModuleType = runtime
    return module


class Cuda:
    """CUDA for one model, which its errors name."""

    def __init__(self, runtime: ModuleType, model: str) -> None:
        self._runtime = runtime
        self._model = model
        kinds = runtime.cudaMemcpyKind
        self._to_device, self._to_host = kinds.cudaMemcpyHostToDevice, kinds.cudaMemcpyDeviceToHost

    def use(self, device: int) -> None:
        """Make this the device of the current thread."""
        self._checked(self._runtime.cudaSetDevice(device))

    def stream(self, priority: ModelPriority) -> int:
        """A new stream; its handle."""
        least, greatest = self._checked(self._runtime.cudaDeviceGetStreamPriorityRange())
        number = {ModelPriority.PRIORITY_MAX: greatest, ModelPriority.PRIORITY_MIN: least}.get(priority, 0)
        (stream,) = self._checked(self._runtime.cudaStreamCreateWithPriority(_NON_BLOCKING, number))
        return int(stream)

    def synchronize(self, stream: int) -> None:
        """Wait until the stream has done its work. Raises what went wrong on the device."""
        self._checked(self._runtime.cudaStreamSynchronize(stream))

    def end_stream(self, stream: int) -> None:
        """Give a stream back."""
        self._checked(self._runtime.cudaStreamDestroy(stream))

    def allocate(self, size: int) -> int:
        """Memory on the current device, of `size` bytes; its address."""
        (address,) = self._checked(self._runtime.cudaMalloc(size), f"for {size} bytes of memory on the GPU")
        return int(address)

    def free(self, address: int) -> None:
        """Give memory back."""
        self._checked(self._runtime.cudaFree(address))

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        """Copy a contiguous array to the device, in the order of the stream; it must be kept until `synchronize`."""
        if array.nbytes:
            self._checked(self._runtime.cudaMemcpyAsync(address, array.ctypes.data, array.nbytes, self._to_device, stream))

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        """Fill a contiguous array from the device, in the order of the stream."""
        if array.nbytes:
            self._checked(self._runtime.cudaMemcpyAsync(array.ctypes.data, address, array.nbytes, self._to_host, stream))

    def _checked(self, result: tuple[Any, ...], what: str = "") -> tuple[Any, ...]:
        code, *values = result
        if int(code):
            _, text = self._runtime.cudaGetErrorString(code)
            words = text.decode() if isinstance(text, bytes) else str(text)
            raise ModelError(f"model '{self._model}': CUDA error {int(code)}{' ' if what else ''}{what}: {words}")
        return tuple(values)
