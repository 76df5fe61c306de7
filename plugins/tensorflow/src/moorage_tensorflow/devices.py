"""Where instances run, in TensorFlow's words, and whether that place is there."""

from __future__ import annotations

from typing import Any

from moorage.backend import Placement
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError

_INSTALL = '`pip uninstall tensorflow-cpu tensorflow`, then `pip install "moorage-tensorflow[gpu]"`'
_ELSE = "or place the model with instance_group { kind: KIND_CPU }"


def device_name(placement: Placement) -> str | None:
    """The device for nodes that name none; None leaves the choice to the graph and to TensorFlow."""
    if placement.kind is InstanceKind.KIND_GPU:
        return f"/gpu:{placement.device_id}"
    return "/cpu:0" if placement.kind is InstanceKind.KIND_CPU else None


def check_device(tf: Any, model: str, placement: Placement) -> None:
    """Raises ModelError that says what is missing if the instance is placed on a GPU that cannot be used."""
    if placement.kind is not InstanceKind.KIND_GPU:
        return
    place = f"model '{model}': instance '{placement.name}' is placed on GPU {placement.device_id}"
    if not tf.test.is_built_with_cuda():
        raise ModelError(f"{place}, but the installed TensorFlow is built for the CPU alone; what helps: {_INSTALL} ({_ELSE})")
    there = len(tf.config.list_physical_devices("GPU"))
    if placement.device_id >= there:
        raise ModelError(
            f"{place}, but TensorFlow finds {there or 'no'} GPU{'s' if there > 1 else ''}; what helps: an NVIDIA driver and "
            f"the CUDA libraries, which come with {_INSTALL} ({_ELSE})"
        )
