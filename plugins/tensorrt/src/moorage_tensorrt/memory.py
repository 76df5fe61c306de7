"""Memory on a GPU that is kept from one run to the next, and grows."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from moorage_tensorrt.cuda import Cuda


class Buffer:
    """A block of memory on the current device, as large as the largest run needed it. `close` it on the same device."""

    def __init__(self, cuda: Cuda) -> None:
        self._cuda = cuda
        self._size = 0
        self.address = 0

    def reserve(self, size: int) -> int:
        """The address of at least `size` bytes (and never null), whose content is lost if they are more than before."""
        if max(size, 1) > self._size:
            self.close()
            self.address = self._cuda.allocate(max(size, 1))
            self._size = max(size, 1)
        return self.address

    def close(self) -> None:
        """Give the memory back."""
        if self._size:
            self._cuda.free(self.address)
        self.address = self._size = 0


def make_allocator(trt: ModuleType, buffer: Buffer) -> Any:
    """An output allocator, for outputs whose sizes are known only when they are there. `shape` is that of the last run."""

    class Allocator(trt.IOutputAllocator):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.shape: tuple[int, ...] = ()

        def reallocate_output(self, tensor_name: str, memory: int, size: int, alignment: int) -> int:
            """Called by TensorRT: memory for so many bytes. (What is allocated is aligned to 256 bytes.)"""
            return buffer.reserve(size)

        def reallocate_output_async(self, tensor_name: str, memory: int, size: int, alignment: int, stream: int) -> int:
            """The same, for work on a stream."""
            return buffer.reserve(size)

        def notify_shape(self, tensor_name: str, shape: Sequence[int]) -> None:
            """Called by TensorRT when the shape is known."""
            self.shape = tuple(shape)

    return Allocator()
