"""Session options out of a model's configuration and the server's `--backend-config`."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from moorage.backend import LoadContext, Settings, threads_for_each
from moorage.config.schema import ModelConfig
from moorage.errors import ConfigError, Fault

GLOBAL_POOL = "enable-global-threadpool"
SHRINK = "memory.enable_memory_arena_shrinkage"
_ERROR, _FATAL = 3, 4
_GRAPH_LEVELS = {0: "ORT_ENABLE_ALL", -1: "ORT_ENABLE_BASIC", 1: "ORT_ENABLE_EXTENDED", 2: "ORT_DISABLE_ALL"}
_SESSION_PREFIXES = ("session.", "ep.", "optimization.", "mlas.")
_EXECUTION_MODES = {"0": "ORT_SEQUENTIAL", "1": "ORT_PARALLEL"}


def session_options(runtime: ModuleType, context: LoadContext) -> Any:
    """An `onnxruntime.SessionOptions` for every session of this model. Raises ConfigError naming the setting that is wrong."""
    settings = Settings.of(context)
    options = runtime.SessionOptions()
    options.graph_optimization_level = _graph_level(runtime, context.config)
    options.log_severity_level = settings.number("log_severity_level", _ERROR)
    options.log_verbosity_level = settings.number("log_verbosity_level", 0)
    options.logid = context.model_name
    options.enable_cpu_mem_arena = settings.flag("enable_mem_arena", True)
    options.enable_mem_pattern = settings.flag("enable_mem_pattern", True)
    mode = settings.choice("execution_mode", _EXECUTION_MODES, "0")
    options.execution_mode = getattr(runtime.ExecutionMode, _EXECUTION_MODES[mode])
    _set_threads(options, settings, context)
    for name, value in settings.given().items():
        if name.startswith(_SESSION_PREFIXES):
            options.add_session_config_entry(name, value)
    return options


def run_options(runtime: ModuleType, context: LoadContext) -> Any:
    """An `onnxruntime.RunOptions` for every run of this model.

    What fails in a run is raised, and told by the server: ONNX Runtime need not write it to the standard error, too.
    """
    settings = Settings.of(context)
    options = runtime.RunOptions()
    options.log_severity_level = settings.number("log_severity_level", _FATAL)
    shrink = settings.text(SHRINK)
    if shrink:
        options.add_run_config_entry(SHRINK, shrink)
    return options


def use_global_threads(runtime: ModuleType, settings: Settings) -> None:
    """Give all sessions of the process one pool of threads, if the command line asks for it."""
    server = settings.of_server()
    if server.flag(GLOBAL_POOL, False):
        intra, inter = (server.number(name, 0) for name in ("intra_op_thread_count", "inter_op_thread_count"))
        runtime.set_global_thread_pool_sizes(intra, inter)


def _graph_level(runtime: ModuleType, config: ModelConfig) -> Any:
    level = config.optimization.graph.level if config.optimization and config.optimization.graph else 0
    if level not in _GRAPH_LEVELS:
        advice = "-1 is basic, 1 extended, 2 off; leave it out for all optimizations"
        raise ConfigError([Fault(f"unknown level {level}", field="optimization.graph.level", advice=advice)], config.name)
    return getattr(runtime.GraphOptimizationLevel, _GRAPH_LEVELS[level])


def _set_threads(options: Any, settings: Settings, context: LoadContext) -> None:
    """Threads of the session's own pool; none spins, since the server's other threads need the cores."""
    if settings.of_server().flag(GLOBAL_POOL, False):
        options.use_per_session_threads = False
        return
    options.intra_op_num_threads = settings.number("intra_op_thread_count", threads_for_each(context))
    options.inter_op_num_threads = settings.number("inter_op_thread_count", 0)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
