"""What a model's parameters and the server's `--backend-config` say about TensorRT."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from attrs import frozen

from moorage.backend import LoadContext
from moorage.config.schema import ModelConfig
from moorage.errors import ConfigError, Fault, Unsupported

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_STRATEGIES = ("STATIC", "ON_PROFILE_CHANGE")
_POLICIES = ("DEVICE_BLOCKING", "BLOCKING")
RUNTIMES = ("auto", "full", "lean", "dispatch", "rtx")

_log = logging.getLogger(__name__)


@frozen
class Settings:
    """`runtime` is which of TensorRT's packages runs the plans ("auto": the first that is installed)."""

    version_compatible: bool = False
    """Plans may bring program code, which is run: they must be trusted."""
    plugins: tuple[str, ...] = ()
    """Shared libraries with layers of their own."""
    runtime: str = "auto"
    strategy: str = "STATIC"
    """When the memory for intermediate results is allocated."""


def read_settings(context: LoadContext) -> Settings:
    """Raises ConfigError naming what is wrong, Unsupported for what is not offered."""
    own = {name: value.string_value for name, value in context.config.parameters.items()}
    server = {name: text.strip() for name, text in context.backend_config.items()}
    if _flag(own, "enable_multi_device", "parameters"):
        raise Unsupported(f"model '{context.model_name}': plans that run on several GPUs at once are not supported")
    _choice(server, "execution-policy", _POLICIES, "BLOCKING", "--backend-config=tensorrt")
    _flag(server, "coalesce-request-input", "--backend-config=tensorrt")
    _tell_of_graphs(context.config)
    return Settings(
        version_compatible=_flag(server, "version-compatible", "--backend-config=tensorrt"),
        plugins=tuple(part for part in server.get("plugins", "").strip("\"'").split(";") if part),
        runtime=_choice(server, "runtime", RUNTIMES, "auto", "--backend-config=tensorrt"),
        strategy=_choice(own, "execution_context_allocation_strategy", _STRATEGIES, "STATIC", "parameters"),
    )


def _flag(settings: Mapping[str, str], name: str, origin: str) -> bool:
    text = settings.get(name, "").lower() or "false"
    if text not in _WORDS:
        raise _wrong(settings[name], name, origin, ("true", "false"))
    return _WORDS[text]


def _choice(settings: Mapping[str, str], name: str, known: tuple[str, ...], default: str, origin: str) -> str:
    text = settings.get(name, "") or default
    if text not in known:
        raise _wrong(text, name, origin, known)
    return text


def _wrong(text: str, name: str, origin: str, known: tuple[str, ...]) -> ConfigError:
    wanted = ", ".join(known)
    return ConfigError([Fault(f"'{text}' is none of {wanted}", field=f"{origin}.{name}", advice=f"write one of {wanted}")])


def _tell_of_graphs(config: ModelConfig) -> None:
    if config.optimization is not None and config.optimization.cuda is not None and config.optimization.cuda.graphs:
        _log.warning("model '%s': optimization.cuda.graphs has no effect: CUDA graphs are not used", config.name)
