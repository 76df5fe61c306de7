"""Where an instance runs, in PyTorch's words. Nothing falls back from a GPU to the CPU."""

from __future__ import annotations

from typing import Any

from moorage.backend import Placement
from moorage.config.schema import InstanceKind
from moorage.errors import ModelError


def device_of(torch: Any, placement: Placement, model: str) -> Any:
    """The `torch.device` of a place; KIND_MODEL counts as the CPU here. Raises ModelError that says what a GPU lacks."""
    if placement.kind is not InstanceKind.KIND_GPU:
        return torch.device("cpu")
    reason = _missing(torch, placement.device_id)
    if reason:
        raise ModelError(
            f"model '{model}' is to run on GPU {placement.device_id} (instance_group {{ kind: KIND_GPU }}), but {reason}; "
            "or place it with instance_group { kind: KIND_CPU }"
        )
    return torch.device("cuda", placement.device_id)


def _missing(torch: Any, number: int) -> str:
    """What keeps PyTorch from using this GPU; empty if nothing does."""
    if not torch.backends.cuda.is_built():
        return f"the installed PyTorch ({torch.__version__}) was built without CUDA: install a build with it"
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001 (whatever CUDA says, it cannot be used)
        return (
            f"CUDA cannot start ({str(error).splitlines()[0]}): an NVIDIA driver that suits CUDA {torch.version.cuda} is needed"
        )
    count = torch.cuda.device_count()
    return "" if number < count else f"PyTorch sees {count} GPU(s), numbered from 0: see CUDA_VISIBLE_DEVICES"
