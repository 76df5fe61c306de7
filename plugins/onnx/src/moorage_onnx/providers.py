"""Which execution providers a model's sessions use on a device, and whether they got them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from moorage.backend import Placement
from moorage.config.schema import Accelerator, ExecutionAccelerators, InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault, ModelError

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

_INSTALL = {
    CUDA: '`pip uninstall onnxruntime`, then `pip install "moorage-onnx[gpu]"`, and an NVIDIA driver on this machine',
    TENSORRT: '`pip uninstall onnxruntime`, then `pip install "moorage-onnx[gpu]" tensorrt`, and an NVIDIA driver',
    OPENVINO: "`pip uninstall onnxruntime`, then `pip install onnxruntime-openvino`",
}
_CUDA_PARAMETERS = {
    "cudnn_conv_algo_search": {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"},
    "gpu_mem_limit": {},
    "arena_extend_strategy": {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"},
    "do_copy_in_default_stream": {},
}
_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_PRECISIONS = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
_BOOLEANS = {"true": "1", "false": "0"}


class Provider(NamedTuple):
    """An execution provider with its options, as ONNX Runtime takes them."""

    name: str
    options: dict[str, str]


def wanted(config: ModelConfig, placement: Placement) -> list[Provider]:
    """The providers for a device, the preferred one first; the CPU is always last."""
    accelerators = config.optimization.execution_accelerators if config.optimization else None
    accelerators = accelerators or ExecutionAccelerators()
    on_gpu = placement.kind is InstanceKind.KIND_GPU
    if not on_gpu:
        return [*_chosen(accelerators.cpu_execution_accelerator, _ON_CPU, "cpu", config), Provider(CPU, {})]
    device = {"device_id": str(placement.device_id)}
    found = _chosen(accelerators.gpu_execution_accelerator, _ON_GPU, "gpu", config)
    if all(provider.name != CUDA for provider in found):
        found.append(Provider(CUDA, _cuda(config, {})))
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


def _chosen(
    accelerators: Sequence[Accelerator], known: Mapping[str, _Builder], kind: str, config: ModelConfig
) -> list[Provider]:
    found = []
    for index, accelerator in enumerate(accelerators):
        if accelerator.name not in known:
            place = f"optimization.execution_accelerators.{kind}_execution_accelerator[{index}].name"
            advice = f"known are {', '.join(known)}"
            raise ConfigError([Fault(f"unknown accelerator '{accelerator.name}'", field=place, advice=advice)], config.name)
        name, build = known[accelerator.name]
        found.append(Provider(name, build(config, accelerator.parameters)))
    return found


def _cuda(config: ModelConfig, parameters: Mapping[str, str]) -> dict[str, str]:
    """CUDA options; those that older configurations have among the model's parameters come first."""
    options = {}
    for name, words in _CUDA_PARAMETERS.items():
        text = config.parameter(name)
        if text:
            options[name] = words.get(text, text)
    return {**options, **parameters}


def _tensorrt(config: ModelConfig, parameters: Mapping[str, str]) -> dict[str, str]:
    options = {}
    for name, text in parameters.items():
        if name == "precision_mode":
            options.update(_precision(config, text))
        else:
            options[_TENSORRT_NAMES.get(name, name)] = _BOOLEANS.get(text.lower(), text)
    return options


def _precision(config: ModelConfig, text: str) -> dict[str, str]:
    if text not in _PRECISIONS:
        advice = f"write one of {', '.join(_PRECISIONS)}"
        raise ConfigError([Fault(f"unknown precision_mode '{text}'", field="optimization", advice=advice)], config.name)
    return {_PRECISIONS[text]: "1"} if _PRECISIONS[text] else {}


def _openvino(_: ModelConfig, parameters: Mapping[str, str]) -> dict[str, str]:
    return {"device_type": "CPU", **parameters}


_Builder = tuple[str, Callable[[ModelConfig, Mapping[str, str]], dict[str, str]]]
_ON_GPU: Mapping[str, _Builder] = {"cuda": (CUDA, _cuda), "tensorrt": (TENSORRT, _tensorrt)}
_ON_CPU: Mapping[str, _Builder] = {"openvino": (OPENVINO, _openvino)}
