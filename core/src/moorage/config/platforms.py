"""Which backend each platform name stands for: the one table of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from moorage.config.schema import ModelConfig

ENSEMBLE = "ensemble"
"""The platform of ensembles, which have no backend."""

TENSORRT = "tensorrt"

KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "tensorrt_plan": TENSORRT,
        "tensorflow_graphdef": "tensorflow",
        "tensorflow_savedmodel": "tensorflow",
        "onnxruntime_onnx": "onnxruntime",
        "pytorch_libtorch": "pytorch",
        "libtorch": "pytorch",
        "torch_aoti": "pytorch",
    }
)
"""Platform -> backend, for the platforms of Triton. Plugins bring more."""

TWO_ON_CPU = frozenset({"tensorflow", "onnxruntime"})
"""Backends that get two instances on the CPU where the configuration gives no count."""


WITHOUT_NVIDIA = frozenset({"openvino"})
"""Backends whose KIND_AUTO never means an NVIDIA GPU."""


def backend_of(config: ModelConfig, platforms: Mapping[str, str] = KNOWN) -> str:
    """The backend that the configuration names, by itself or through its platform; "" when it names none."""
    return config.backend or platforms.get(config.platform, "")


def platforms_of(backend: str, platforms: Mapping[str, str] = KNOWN) -> tuple[str, ...]:
    """The platforms that stand for a backend."""
    return tuple(platform for platform, name in platforms.items() if name == backend)
