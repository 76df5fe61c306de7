"""The options of execution providers out of `optimization { execution_accelerators }` and older parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from moorage.backend import SWITCH_WORDS, Settings
from moorage.config.schema import Accelerator, ModelConfig
from moorage.errors import ConfigError, Fault

CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

_NUMBERS = frozenset({
    "max_workspace_size_bytes", "trt_max_partition_iterations", "trt_min_subgraph_size", "trt_dla_core",
    "trt_builder_optimization_level", "trt_auxiliary_streams", "trt_ep_context_embed_mode",
})  # fmt: skip
_SWITCHES = frozenset({
    "int8_use_native_calibration_table", "trt_dla_enable", "trt_engine_cache_enable", "trt_dump_subgraphs",
    "trt_force_sequential_engine_build", "trt_context_memory_sharing_enable", "trt_layer_norm_fp32_fallback",
    "trt_timing_cache_enable", "trt_force_timing_cache", "trt_detailed_build_log", "trt_build_heuristics_enable",
    "trt_sparsity_enable", "trt_cuda_graph_enable", "trt_dump_ep_context_model",
    "do_copy_in_default_stream", "use_ep_level_unified_stream",
})  # fmt: skip
_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_PRECISIONS = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}
_CUDA_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "cudnn_conv_algo_search": {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"},
    "gpu_mem_limit": {},
    "arena_extend_strategy": {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"},
    "do_copy_in_default_stream": {},
}


class Provider(NamedTuple):
    """An execution provider with its options, as ONNX Runtime takes them."""

    name: str
    options: dict[str, str]


def chosen(accelerators: Sequence[Accelerator], kind: str, config: ModelConfig) -> list[Provider]:
    """The providers of `gpu_` or `cpu_execution_accelerator`. Raises ConfigError naming the field that is wrong."""
    known = _KNOWN[kind]
    found = []
    for index, accelerator in enumerate(accelerators):
        place = f"optimization.execution_accelerators.{kind}_execution_accelerator[{index}]"
        if accelerator.name not in known:
            raise _fault(config, f"{place}.name", f"unknown accelerator '{accelerator.name}'", f"known are {', '.join(known)}")
        name, build = known[accelerator.name]
        found.append(Provider(name, build(_Given(config, f"{place}.parameters", accelerator.parameters))))
    return found


def plain_cuda(config: ModelConfig) -> Provider:
    """CUDA without an accelerator of that name: older configurations have its options among the model's parameters."""
    return Provider(CUDA, _cuda(_Given(config, "", {})))


class _Given(NamedTuple):
    """The parameters of an accelerator, and where they stand."""

    config: ModelConfig
    place: str
    parameters: Mapping[str, str]

    def checked(self, name: str) -> str:
        """The value of a parameter, as ONNX Runtime wants it."""
        text = self.parameters[name]
        if name in _NUMBERS and not text.lstrip("-").isdigit():
            raise self.fault(name, f"'{text}' is not a whole number", "write a whole number")
        if name in _SWITCHES and text.lower() not in SWITCH_WORDS:
            raise self.fault(name, f"'{text}' is not 1 or 0", "write 1 or 0")
        return str(int(SWITCH_WORDS[text.lower()])) if name in _SWITCHES else text

    def fault(self, name: str, message: str, advice: str) -> ConfigError:
        return _fault(self.config, f"{self.place}.{name}", message, advice)


def _cuda(given: _Given) -> dict[str, str]:
    own = Settings(given.config.name, {name: value.string_value for name, value in given.config.parameters.items()})
    options = {}
    for name, words in _CUDA_PARAMETERS.items():
        if not own.text(name):
            continue
        options[name] = words[own.choice(name, words, "0")] if words else own.text(name)
    return {**options, **{name: given.checked(name) for name in given.parameters}}


def _tensorrt(given: _Given) -> dict[str, str]:
    options = {}
    for name in given.parameters:
        if name == "precision_mode":
            options.update(_precision(given))
        elif name.startswith("trt_") or name in _TENSORRT_NAMES:
            options[_TENSORRT_NAMES.get(name, name)] = given.checked(name)
        else:
            close = get_close_matches(name, [*_TENSORRT_NAMES, "precision_mode", *_NUMBERS, *_SWITCHES], 1)
            advice = f"did you mean '{close[0]}'?" if close else "options of ONNX Runtime begin with trt_"
            raise given.fault(name, "the accelerator 'tensorrt' has no such parameter", advice)
    return options


def _precision(given: _Given) -> dict[str, str]:
    text = given.parameters["precision_mode"]
    if text not in _PRECISIONS:
        raise given.fault("precision_mode", f"unknown precision_mode '{text}'", f"write one of {', '.join(_PRECISIONS)}")
    return {_PRECISIONS[text]: "1"} if _PRECISIONS[text] else {}


def _openvino(given: _Given) -> dict[str, str]:
    return {"device_type": "CPU", **given.parameters}


def _fault(config: ModelConfig, place: str, message: str, advice: str) -> ConfigError:
    return ConfigError([Fault(message, field=place, advice=advice)], config.name)


_Builder = tuple[str, Callable[[_Given], dict[str, str]]]
_KNOWN: Mapping[str, Mapping[str, _Builder]] = {
    "gpu": {"cuda": (CUDA, _cuda), "tensorrt": (TENSORRT, _tensorrt)},
    "cpu": {"openvino": (OPENVINO, _openvino)},
}
