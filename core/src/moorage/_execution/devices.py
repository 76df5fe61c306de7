"""The GPUs of this machine, asked of the driver without touching any framework."""

from __future__ import annotations

import ctypes
from functools import cache

_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
"""Numbers of CUdevice_attribute."""


@cache
def gpus() -> tuple[int, ...]:
    """Numbers of the GPUs that the NVIDIA driver reports; none where there is no driver."""
    import pynvml  # noqa: PLC0415 (not needed where no model is loaded)

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(range(pynvml.nvmlDeviceGetCount()))
    finally:
        pynvml.nvmlShutdown()


def compute_capability(gpu: int) -> str:
    """The compute capability of the GPU that frameworks know by this number, such as "8.6"; "" if that cannot be told.

    CUDA is asked, since it may number GPUs of different kinds otherwise than the management library does.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    device, value = ctypes.c_int(), ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), gpu):
        return ""
    numbers = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        if driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device):
            return ""
        numbers.append(value.value)
    return ".".join(map(str, numbers))
