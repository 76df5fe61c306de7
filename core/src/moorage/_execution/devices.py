"""The GPUs of this machine, asked of the driver without touching any framework."""

from __future__ import annotations

from functools import cache


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
