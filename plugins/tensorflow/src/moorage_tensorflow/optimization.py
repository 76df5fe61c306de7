"""The `optimization` of a configuration, as TensorFlow's session options."""

from __future__ import annotations

import logging
from typing import Any

from moorage.backend import Placement
from moorage.config.schema import ExecutionAccelerators, InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault

logger = logging.getLogger(__name__)

_MIXED_PRECISION = "auto_mixed_precision"
_NO_EFFECT = "gpu_io"
_TENSORRT = "tensorrt"
_FIELD = "optimization.execution_accelerators"


def optimise(options: Any, config: ModelConfig, placement: Placement) -> None:
    """Set the XLA level and mixed precision in a `ConfigProto`.

    Raises ConfigError for an accelerator that TensorFlow does not have.
    """
    policy = config.optimization
    if policy is None:
        return
    if policy.graph is not None:
        options.graph_options.optimizer_options.global_jit_level = _jit_level(options, policy.graph.level)
    if policy.execution_accelerators is not None:
        _accelerate(options, config, policy.execution_accelerators, placement)


def _jit_level(options: Any, level: int) -> Any:
    """-1 switches XLA off, 1 and 2 are its levels, 0 leaves it to TensorFlow."""
    levels = type(options.graph_options.optimizer_options)
    if level < 0:
        return levels.OFF
    return (levels.DEFAULT, levels.ON_1, levels.ON_2)[min(level, 2)]


def _accelerate(options: Any, config: ModelConfig, accelerators: ExecutionAccelerators, placement: Placement) -> None:
    if accelerators.cpu_execution_accelerator:
        raise _refused(config, "cpu_execution_accelerator", "TensorFlow has no accelerators for the CPU", "leave it out")
    for index, accelerator in enumerate(accelerators.gpu_execution_accelerator):
        place = f"gpu_execution_accelerator[{index}].name"
        if accelerator.name == _TENSORRT:
            message = "TensorFlow has no TensorRT any more"
            raise _refused(config, place, message, "leave it out, or convert the model and serve it with the backend tensorrt")
        if accelerator.name not in (_MIXED_PRECISION, _NO_EFFECT):
            raise _refused(
                config, place, f"unknown accelerator '{accelerator.name}'", f"known are {_MIXED_PRECISION}, {_NO_EFFECT}"
            )
        if placement.kind is InstanceKind.KIND_CPU or accelerator.name == _NO_EFFECT:
            logger.warning("model '%s': %s has no effect on instance '%s'", config.name, accelerator.name, placement.name)
        else:
            rewriter = options.graph_options.rewrite_options
            rewriter.auto_mixed_precision = rewriter.ON


def _refused(config: ModelConfig, place: str, message: str, advice: str) -> ConfigError:
    return ConfigError([Fault(message, field=f"{_FIELD}.{place}", advice=advice)], config.name)
