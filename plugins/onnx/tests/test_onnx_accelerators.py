from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.backend import Placement
from moorage.config.schema import Accelerator, ExecutionAccelerators, InstanceKind, ModelConfig, OptimizationPolicy, Parameter
from moorage.errors import ConfigError, ModelError
from moorage_onnx.accelerators import CUDA, OPENVINO, TENSORRT, Provider
from moorage_onnx.providers import CPU, check_built_in, check_obtained, wanted

GPU_1 = Placement("m", InstanceKind.KIND_GPU, 1)
ON_CPU = Placement("m", InstanceKind.KIND_CPU)


def accelerated(*, gpu: Any = (), cpu: Any = (), **parameters: Any) -> ModelConfig:
    policy = OptimizationPolicy(execution_accelerators=ExecutionAccelerators(tuple(gpu), tuple(cpu)))
    return ModelConfig(name="m", optimization=policy, parameters={k: Parameter(v) for k, v in parameters.items()})


def test_the_cpu_alone_is_the_default() -> None:
    assert wanted(ModelConfig(), ON_CPU) == [Provider(CPU, {})]


def test_a_gpu_means_cuda_on_that_device() -> None:
    assert wanted(ModelConfig(), GPU_1) == [Provider(CUDA, {"device_id": "1"}), Provider(CPU, {})]


def test_tensorrt_comes_before_cuda() -> None:
    parameters = {"precision_mode": "FP16", "max_workspace_size_bytes": "7", "trt_engine_cache_enable": "true"}
    found = wanted(accelerated(gpu=[Accelerator("tensorrt", parameters)]), GPU_1)
    assert found == [
        Provider(
            TENSORRT,
            {"trt_fp16_enable": "1", "trt_max_workspace_size": "7", "trt_engine_cache_enable": "1", "device_id": "1"},
        ),
        Provider(CUDA, {"device_id": "1"}),
        Provider(CPU, {}),
    ]


def test_cuda_takes_options_in_both_places() -> None:
    config = accelerated(gpu=[Accelerator("cuda", {"use_ep_level_unified_stream": "1"})], cudnn_conv_algo_search="1")
    (cuda, _) = wanted(config, GPU_1)
    assert cuda.options == {"use_ep_level_unified_stream": "1", "cudnn_conv_algo_search": "HEURISTIC", "device_id": "1"}


def test_openvino_is_for_the_cpu() -> None:
    config = accelerated(cpu=[Accelerator("openvino")])
    assert wanted(config, ON_CPU) == [Provider(OPENVINO, {"device_type": "CPU"}), Provider(CPU, {})]
    assert OPENVINO not in [provider.name for provider in wanted(config, GPU_1)]


@pytest.mark.parametrize(
    "config, place",
    [
        (accelerated(gpu=[Accelerator("rocket")]), GPU_1),
        (accelerated(cpu=[Accelerator("rocket")]), ON_CPU),
    ],
)
def test_an_unknown_accelerator_is_a_config_error(config: Any, place: Any) -> None:
    with pytest.raises(ConfigError, match="unknown accelerator 'rocket'"):
        wanted(config, place)


def test_a_gpu_without_cuda_says_what_to_install(load: Callable[..., Any]) -> None:
    with pytest.raises(ModelError, match=r"model 'add_sub' needs CUDAExecutionProvider.*moorage-onnx\[gpu\].*KIND_CPU"):
        load("add_sub").instance(GPU_1)


def test_a_provider_that_did_not_start_is_an_error() -> None:
    cuda = [Provider(CUDA, {}), Provider(CPU, {})]
    check_obtained("m", cuda, [CUDA, CPU])
    check_built_in("m", cuda, [TENSORRT, CUDA, CPU])
    with pytest.raises(ModelError, match="model 'm' needs CUDAExecutionProvider, but it could not start"):
        check_obtained("m", cuda, [CPU])


def tensorrt(**parameters: str) -> dict[str, str]:
    return wanted(accelerated(gpu=[Accelerator("tensorrt", parameters)]), GPU_1)[0].options


@pytest.mark.parametrize(
    "given, options",
    [
        ({"precision_mode": "FP32"}, {}),
        ({"precision_mode": "BF16"}, {"trt_bf16_enable": "1"}),
        ({"precision_mode": "INT8"}, {"trt_int8_enable": "1"}),
        ({"int8_calibration_table_name": "table"}, {"trt_int8_calibration_table_name": "table"}),
        ({"int8_use_native_calibration_table": "True"}, {"trt_int8_use_native_calibration_table": "1"}),
        ({"trt_timing_cache_enable": "false"}, {"trt_timing_cache_enable": "0"}),
        ({"trt_profile_min_shapes": "x:1x3"}, {"trt_profile_min_shapes": "x:1x3"}),
        ({"trt_some_newer_option": "anything"}, {"trt_some_newer_option": "anything"}),
    ],
)
def test_tensorrt_takes_its_options_by_triton_s_names(given: dict[str, str], options: dict[str, str]) -> None:
    assert tensorrt(**given) == {**options, "device_id": "1"}


@pytest.mark.parametrize(
    "given, words",
    [
        ({"precision_mode": "FP8"}, r"precision_mode: unknown precision_mode 'FP8' \(write one of FP32, FP16"),
        ({"max_workspace_size_bytes": "1GB"}, "max_workspace_size_bytes: '1GB' is not a whole number"),
        ({"trt_engine_cache_enable": "perhaps"}, "trt_engine_cache_enable: 'perhaps' is not 1 or 0"),
        ({"max_workspace_size": "1"}, r"max_workspace_size: .*no such parameter \(did you mean 'max_workspace_size_bytes'"),
        ({"speed": "1"}, r"speed: .*no such parameter \(options of ONNX Runtime begin with trt_"),
    ],
)
def test_a_parameter_of_tensorrt_that_makes_no_sense_is_a_config_error(given: dict[str, str], words: str) -> None:
    place = r"model 'm': optimization\.execution_accelerators\.gpu_execution_accelerator\[0\]\.parameters\."
    with pytest.raises(ConfigError, match=place + words):
        tensorrt(**given)


@pytest.mark.parametrize("name, text", [("cudnn_conv_algo_search", "3"), ("arena_extend_strategy", "big")])
def test_an_older_cuda_parameter_that_makes_no_sense_is_a_config_error(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"model 'm': parameters.{name}: '{text}' is not one of 0, 1"):
        wanted(accelerated(**{name: text}), GPU_1)


def test_an_accelerator_that_is_not_built_in_is_an_error_that_says_what_to_install(load: Callable[..., Any]) -> None:
    config = accelerated(cpu=[Accelerator("openvino")])
    with pytest.raises(ModelError, match=r"model '.*' needs OpenVINOExecutionProvider.*pip install onnxruntime-openvino"):
        load("add_sub", config)
