"""What a model's `parameters` and the server's `--backend-config` say about running it."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from attrs import frozen

from moorage.backend import LoadContext
from moorage.config.schema import InstanceKind
from moorage.errors import ConfigError, Fault

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_WITHOUT_EFFECT = {
    "ENABLE_NVFUSER": "PyTorch has no NVFuser any more",
    "TORCH_COMPILE_OPTIONAL_PARAMETERS": "it is for models in a model.py, which are served by the backend 'python'",
}
_FOR_SCRIPTS = (
    "DISABLE_OPTIMIZED_EXECUTION",
    "ENABLE_JIT_EXECUTOR",
    "ENABLE_JIT_PROFILING",
    "ENABLE_TENSOR_FUSER",
)

log = logging.getLogger(__name__)


@frozen
class Options:
    """How a model runs. None leaves a setting of PyTorch as it is."""

    inference_mode: bool = True
    optimized_execution: bool = True
    cudnn: bool = True
    cache_cleaning: bool = False
    weight_sharing: bool | None = None
    jit_profiling: bool | None = None
    jit_executor: bool | None = None
    tensor_fuser: bool | None = None
    intra_op_threads: int = 1
    inter_op_threads: int = 0
    """0 leaves the number to PyTorch."""


def options_of(context: LoadContext, *, script: bool) -> Options:
    """Read the settings of a model; its own win over the server's. Logs those that do nothing.

    Raises ConfigError that names the parameter.
    """
    own = {name: value.string_value for name, value in context.config.parameters.items()}
    settings = {**context.backend_config, **own}
    _warn(settings, context.model_name, script=script)
    return Options(
        inference_mode=flag(settings, "INFERENCE_MODE", True),
        optimized_execution=not flag(settings, "DISABLE_OPTIMIZED_EXECUTION", False),
        cudnn=not flag(settings, "DISABLE_CUDNN", False),
        cache_cleaning=flag(settings, "ENABLE_CACHE_CLEANING", False),
        weight_sharing=_optional(settings, "ENABLE_WEIGHT_SHARING"),
        jit_profiling=_optional(settings, "ENABLE_JIT_PROFILING"),
        jit_executor=_optional(settings, "ENABLE_JIT_EXECUTOR"),
        tensor_fuser=_optional(settings, "ENABLE_TENSOR_FUSER"),
        intra_op_threads=_count(settings, ("INTRA_OP_THREAD_COUNT", "NUM_THREADS")) or default_threads(context),
        inter_op_threads=_count(settings, ("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS")),
    )


def default_threads(context: LoadContext) -> int:
    """Threads inside one operator when nobody says: the cores of this process, divided among the CPU instances."""
    on_cpu = sum(placement.kind is not InstanceKind.KIND_GPU for placement in context.placements)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // max(1, on_cpu))


def flag(settings: Mapping[str, str], name: str, default: bool) -> bool:
    """A switch among the settings. Raises ConfigError that names it."""
    value = _optional(settings, name)
    return default if value is None else value


def _optional(settings: Mapping[str, str], name: str) -> bool | None:
    text = settings.get(name, "").strip().lower()
    if not text:
        return None
    if text not in _WORDS:
        raise _wrong(name, text, '"true" or "false"')
    return _WORDS[text]


def _count(settings: Mapping[str, str], names: tuple[str, ...]) -> int:
    """A number of threads under any of its names, 0 if it is not given; numbers below 1 mean the same."""
    name = next((name for name in names if settings.get(name, "").strip()), "")
    if not name:
        return 0
    text = settings[name].strip()
    try:
        return max(0, int(text))
    except ValueError:
        raise _wrong(name, text, "a whole number") from None


def _wrong(name: str, text: str, wanted: str) -> ConfigError:
    return ConfigError([Fault(f"'{text}' is not {wanted}", field=f"parameters.{name}", advice=f"write {wanted}")])


def _warn(settings: Mapping[str, str], model: str, *, script: bool) -> None:
    for name, reason in _WITHOUT_EFFECT.items():
        if name in settings:
            log.warning("model '%s': parameter %s does nothing: %s", model, name, reason)
    for name in _FOR_SCRIPTS if not script else ():
        if name in settings:
            log.warning("model '%s': parameter %s does nothing: it is for TorchScript models", model, name)
