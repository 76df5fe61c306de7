"""A CUDA without a GPU: the memory of its devices is the host's, and streams do their work when they are waited for."""

from __future__ import annotations

import ctypes
import threading
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np


def _copy(dst: int, src: int, count: int) -> None:
    ctypes.memmove(dst, src, count)


class Kinds:
    cudaMemcpyHostToDevice = "to device"
    cudaMemcpyDeviceToHost = "to host"


class FakeCuda:
    """Functions of `cuda.bindings.runtime`. `device` is the current thread's, `blocks` are what is allocated."""

    cudaMemcpyKind = Kinds

    def __init__(self, devices: int = 2, memory: int = 2**30) -> None:
        self.devices = devices
        self.memory = memory
        self.blocks: dict[int, tuple[np.ndarray, int]] = {}
        self.streams: dict[int, int] = {}
        self.priorities: list[int] = []
        self.work: defaultdict[int, list[Callable[[], None]]] = defaultdict(list)
        self.broken = ""
        self._thread = threading.local()

    @property
    def device(self) -> int:
        return getattr(self._thread, "device", 0)

    def cudaSetDevice(self, device: int) -> tuple[int]:
        if device >= self.devices:
            return (101,)
        self._thread.device = device
        return (0,)

    def cudaDeviceGetStreamPriorityRange(self) -> tuple[int, int, int]:
        return 0, 0, -5

    def cudaStreamCreateWithPriority(self, flags: int, priority: int) -> tuple[int, int]:
        stream = 7000 + len(self.priorities)
        self.priorities.append(priority)
        self.streams[stream] = self.device
        return 0, stream

    def cudaStreamDestroy(self, stream: int) -> tuple[int]:
        del self.streams[stream]
        return (0,)

    def cudaStreamSynchronize(self, stream: int) -> tuple[int]:
        assert self.streams[stream] == self.device, "the stream is another device's"
        work, self.work[stream] = self.work[stream], []
        for step in work:
            step()
        return (700,) if self.broken == "run" else (0,)

    def cudaMalloc(self, size: int) -> tuple[int, int]:
        used = sum(block.nbytes for block, _ in self.blocks.values())
        if used + size > self.memory:
            return 2, 0
        block = np.full(size, 0xA5, np.uint8)
        self.blocks[block.ctypes.data] = block, self.device
        return 0, block.ctypes.data

    def cudaFree(self, devPtr: int) -> tuple[int]:
        _, device = self.blocks.pop(devPtr)
        assert device == self.device, "the memory is another device's"
        return (0,)

    def cudaMemcpyAsync(self, dst: int, src: int, count: int, kind: str, stream: int) -> tuple[int]:
        inside = dst if kind == Kinds.cudaMemcpyHostToDevice else src
        self.check(inside, count)
        self.work[stream].append(partial(_copy, dst, src, count))
        return (0,)

    def cudaGetErrorString(self, error: int) -> tuple[int, bytes]:
        return 0, {2: b"out of memory", 700: b"an illegal memory access was encountered", 101: b"invalid device ordinal"}[error]

    def check(self, address: int, count: int) -> None:
        """The memory must be the current device's, and large enough."""
        block, device = self.blocks[address]
        assert device == self.device, "the memory is another device's"
        assert block.nbytes >= count

    def array(self, address: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """What lies at an address of the current device."""
        count = int(np.prod(shape)) * dtype.itemsize
        self.check(address, count)
        return self.blocks[address][0][:count].view(dtype).reshape(shape)


class FakeDriver:
    """Some of libcuda, with so many devices; `init` and `count` are the codes that its functions return."""

    def __init__(self, devices: int = 2, init: int = 0, count: int = 0) -> None:
        self.devices, self.init, self.count = devices, init, count

    def cuInit(self, flags: int) -> int:
        return self.init

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.devices
        return self.count
