"""What a model's `parameters` and the server's `--backend-config` say about running it."""

from __future__ import annotations

import logging

from attrs import frozen

from moorage.backend import LoadContext, Settings, threads_for_each

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
    settings = Settings.of(context)
    _warn(settings, script=script)
    return Options(
        inference_mode=settings.flag("INFERENCE_MODE", True),
        optimized_execution=not settings.flag("DISABLE_OPTIMIZED_EXECUTION"),
        cudnn=not settings.flag("DISABLE_CUDNN"),
        cache_cleaning=settings.flag("ENABLE_CACHE_CLEANING"),
        weight_sharing=settings.switch("ENABLE_WEIGHT_SHARING"),
        jit_profiling=settings.switch("ENABLE_JIT_PROFILING"),
        jit_executor=settings.switch("ENABLE_JIT_EXECUTOR"),
        tensor_fuser=settings.switch("ENABLE_TENSOR_FUSER"),
        intra_op_threads=_count(settings, "INTRA_OP_THREAD_COUNT", "NUM_THREADS") or threads_for_each(context),
        inter_op_threads=_count(settings, "INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS"),
    )


def _count(settings: Settings, name: str, older: str) -> int:
    """A number of threads under either of its names, 0 if it is not given; numbers below 1 mean the same."""
    written = name if settings.text(name) else older
    return max(0, settings.number(written, 0, least=None))


def _warn(settings: Settings, *, script: bool) -> None:
    given = settings.given()
    for name, reason in _WITHOUT_EFFECT.items():
        if name in given:
            log.warning("model '%s': parameter %s does nothing: %s", settings.model, name, reason)
    for name in _FOR_SCRIPTS if not script else ():
        if name in given:
            log.warning("model '%s': parameter %s does nothing: it is for TorchScript models", settings.model, name)
