"""What a model's parameters and the server's `--backend-config` say about TensorRT."""

from __future__ import annotations

import logging

from attrs import frozen

from moorage.backend import LoadContext, Settings
from moorage.config.schema import ModelConfig
from moorage.errors import Unsupported

_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")
_POLICIES = ("DEVICE_BLOCKING", "BLOCKING")
_RUNTIMES = ("auto", "full", "lean", "dispatch")

_log = logging.getLogger(__name__)


@frozen
class TensorRtSettings:
    """`runtime` is which of TensorRT's packages runs the plans ("auto": the first that is installed)."""

    version_compatible: bool = False
    """Plans may bring program code, which is run: they must be trusted."""
    plugins: tuple[str, ...] = ()
    """Shared libraries with layers of their own."""
    runtime: str = "auto"
    strategy: str = "STATIC"
    """When the memory for intermediate results is allocated."""


def read_settings(context: LoadContext) -> TensorRtSettings:
    """Raises ConfigError naming what is wrong, Unsupported for what is not offered."""
    settings = Settings.of(context)
    server, own = settings.of_server(), settings.of_model()
    if own.flag("enable_multi_device"):
        raise Unsupported(f"model '{context.model_name}': plans that run on several GPUs at once are not supported")
    server.choice("execution-policy", _POLICIES, "BLOCKING")
    server.flag("coalesce-request-input")
    _tell_of_graphs(context.config)
    return TensorRtSettings(
        version_compatible=server.flag("version-compatible"),
        plugins=tuple(part for part in server.text("plugins").strip("\"'").split(";") if part),
        runtime=server.choice("runtime", _RUNTIMES, "auto"),
        strategy=own.choice("execution_context_allocation_strategy", _STRATEGIES, "STATIC"),
    )


def _tell_of_graphs(config: ModelConfig) -> None:
    if config.optimization is not None and config.optimization.cuda is not None and config.optimization.cuda.graphs:
        _log.warning("model '%s': optimization.cuda.graphs has no effect: CUDA graphs are not used", config.name)
