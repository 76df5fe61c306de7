"""Is there a GPU? Asked of the NVIDIA driver itself, before TensorRT is touched, which ends the process where there is none."""

from __future__ import annotations

import ctypes

from moorage.errors import ModelError

LIBRARY = "libcuda.so.1"
ADVICE = "install the NVIDIA driver, or start the container with its GPUs (docker run --gpus=all)"
_NO_DEVICE = 100
"""CUDA_ERROR_NO_DEVICE"""


def trouble() -> str:
    """Why no GPU can be used; empty if one can."""
    try:
        count_devices()
    except _NoGpuError as error:
        return str(error)
    return ""


def require_devices(model: str, wanted: set[int]) -> None:
    """Raise ModelError naming the model if there is no driver, or if one of the wanted GPUs is not there."""
    try:
        count = count_devices()
    except _NoGpuError as error:
        raise ModelError(f"model '{model}': TensorRT needs an NVIDIA GPU, but {error}; {ADVICE}") from error
    missing = sorted(number for number in wanted if number >= count)
    if missing:
        raise ModelError(
            f"model '{model}' is placed on GPU {missing[0]}, but CUDA shows {count} (numbers from 0): change gpus in its "
            "instance_group, or CUDA_VISIBLE_DEVICES"
        )


class _NoGpuError(Exception):
    """Says why there is none."""


def count_devices() -> int:
    """How many GPUs the driver shows to this process, at least one."""
    try:
        driver = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise _NoGpuError(f"there is no NVIDIA driver on this machine ({error})") from error
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code == _NO_DEVICE or (not code and not count.value):
        raise _NoGpuError("the NVIDIA driver shows none to this process")
    if code:
        raise _NoGpuError(f"the NVIDIA driver cannot be started (CUDA error {code})")
    return count.value
