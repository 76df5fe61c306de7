"""Which execution providers a model's sessions use on a device, and whether they got them."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.backend import Placement
from moorage.config.schema import ExecutionAccelerators, InstanceKind, ModelConfig
from moorage.errors import ModelError
from moorage_onnx.accelerators import CUDA, OPENVINO, TENSORRT, Provider, chosen, plain_cuda

CPU = "CPUExecutionProvider"

_INSTALL = {
    CUDA: '`pip uninstall onnxruntime`, then `pip install "moorage-onnx[gpu]"`, and an NVIDIA driver on this machine',
    TENSORRT: '`pip uninstall onnxruntime`, then `pip install "moorage-onnx[gpu]" tensorrt`, and an NVIDIA driver',
    OPENVINO: "`pip uninstall onnxruntime`, then `pip install onnxruntime-openvino`",
}


def wanted(config: ModelConfig, placement: Placement) -> list[Provider]:
    """The providers for a device, the preferred one first; the CPU is always last."""
    accelerators = config.optimization.execution_accelerators if config.optimization else None
    accelerators = accelerators or ExecutionAccelerators()
    if placement.kind is not InstanceKind.KIND_GPU:
        return [*chosen(accelerators.cpu_execution_accelerator, "cpu", config), Provider(CPU, {})]
    device = {"device_id": str(placement.device_id)}
    found = chosen(accelerators.gpu_execution_accelerator, "gpu", config)
    if all(provider.name != CUDA for provider in found):
        found.append(plain_cuda(config))
    return [*(Provider(name, {**options, **device}) for name, options in found), Provider(CPU, {})]


def check_built_in(model: str, providers: Sequence[Provider], available: Sequence[str]) -> None:
    """Refuse providers that the installed ONNX Runtime was built without."""
    for provider in providers:
        if provider.name not in available:
            raise _missing(model, provider.name, f"the installed ONNX Runtime has only {', '.join(available)}")


def check_obtained(model: str, providers: Sequence[Provider], obtained: Sequence[str]) -> None:
    """Refuse a session that ONNX Runtime quietly made with other providers than those asked for."""
    for provider in providers:
        if provider.name not in obtained:
            raise _missing(model, provider.name, "it could not start, so ONNX Runtime would have used " + ", ".join(obtained))


def _missing(model: str, name: str, reason: str) -> ModelError:
    install = _INSTALL.get(name, "a build of ONNX Runtime that has it")
    advice = " (or place the model with instance_group { kind: KIND_CPU })" if name in (CUDA, TENSORRT) else ""
    return ModelError(f"model '{model}' needs {name}, but {reason}; what helps: {install}{advice}")
