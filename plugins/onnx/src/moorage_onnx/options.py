"""Session options out of a model's configuration and the server's `--backend-config`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from moorage.backend import LoadContext
from moorage.config.schema import InstanceKind, ModelConfig
from moorage.errors import ConfigError, Fault

_GRAPH_LEVELS = {0: "ORT_ENABLE_ALL", -1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
_SESSION_PREFIXES = ("session.", "ep.", "optimization.", "mlas.")
_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
SHRINK = "memory.enable_memory_arena_shrinkage"


def settings_of(context: LoadContext) -> dict[str, str]:
    """The model's parameters over the server's settings for this backend."""
    own = {name: value.string_value for name, value in context.config.parameters.items()}
    return {**context.backend_config, **own}


def session_options(runtime: ModuleType, context: LoadContext) -> Any:
    """An `onnxruntime.SessionOptions` for every session of this model."""
    settings = settings_of(context)
    options = runtime.SessionOptions()
    options.graph_optimization_level = _graph_level(runtime, context.config)
    options.log_severity_level = number(settings, "log_severity_level", 3)
    options.log_verbosity_level = number(settings, "log_verbosity_level", 0)
    options.logid = context.model_name
    options.enable_cpu_mem_arena = flag(settings, "enable_mem_arena", True)
    options.enable_mem_pattern = flag(settings, "enable_mem_pattern", True)
    if number(settings, "execution_mode", 0):
        options.execution_mode = runtime.ExecutionMode.ORT_PARALLEL
    _set_threads(options, settings, context)
    for name, value in settings.items():
        if name.startswith(_SESSION_PREFIXES):
            options.add_session_config_entry(name, value)
    return options


def run_options(runtime: ModuleType, context: LoadContext) -> Any:
    """An `onnxruntime.RunOptions` for every run of this model, or None when it asks for nothing special."""
    shrink = settings_of(context).get(SHRINK, "")
    if not shrink:
        return None
    options = runtime.RunOptions()
    options.add_run_config_entry(SHRINK, shrink)
    return options


def default_threads(context: LoadContext) -> int:
    """Threads inside one operator when nobody says: the cores of this process, divided among the CPU instances."""
    on_cpu = sum(placement.kind is not InstanceKind.KIND_GPU for placement in context.placements)
    return max(1, _cores() // max(1, on_cpu))


def _cores() -> int:
    """The cores that this process may use; where the system does not tell (macOS, Windows), those of the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def number(settings: Mapping[str, str], name: str, default: int, *, origin: str = "parameters") -> int:
    """A whole number among the settings. Raises ConfigError that names the setting."""
    text = settings.get(name, "").strip()
    try:
        return int(text) if text else default
    except ValueError:
        raise _wrong(name, text, "a whole number", origin) from None


def flag(settings: Mapping[str, str], name: str, default: bool, *, origin: str = "parameters") -> bool:
    """A switch among the settings. Raises ConfigError that names the setting."""
    text = settings.get(name, "").strip().lower()
    if not text:
        return default
    if text not in _WORDS:
        raise _wrong(name, text, "1 or 0", origin)
    return _WORDS[text]


def _wrong(name: str, text: str, wanted: str, origin: str) -> ConfigError:
    return ConfigError([Fault(f"'{text}' is not {wanted}", field=f"{origin}.{name}", advice=f"write {wanted}")])


def _graph_level(runtime: ModuleType, config: ModelConfig) -> Any:
    level = config.optimization.graph.level if config.optimization and config.optimization.graph else 0
    if level not in _GRAPH_LEVELS:
        advice = "-1 is basic, 1 extended, 2 off; leave it out for all optimizations"
        raise ConfigError([Fault(f"unknown level {level}", field="optimization.graph.level", advice=advice)])
    return getattr(runtime.GraphOptimizationLevel, _GRAPH_LEVELS[level])


def _set_threads(options: Any, settings: Mapping[str, str], context: LoadContext) -> None:
    """Threads of the session's own pool; none spins, since the server's other threads need the cores."""
    if flag(context.backend_config, "enable-global-threadpool", False, origin="--backend-config"):
        options.use_per_session_threads = False
        return
    options.intra_op_num_threads = number(settings, "intra_op_thread_count", default_threads(context))
    options.inter_op_num_threads = number(settings, "inter_op_thread_count", 0)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
