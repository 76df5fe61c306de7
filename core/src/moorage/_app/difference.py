"""How a configuration as written differs from one that is served: pure."""

from __future__ import annotations

import attrs

from moorage._control.forecast import INSTANCES
from moorage._execution.completion import lost
from moorage.config import normalise
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import DynamicBatching, ModelConfig
from moorage.errors import ConfigError

_COMPLETED = frozenset(
    {
        "backend",
        "default_model_filename",
        "input",
        "max_batch_size",
        "model_transaction_policy",
        "output",
        "platform",
        "scheduling",
    }
)
"""What the server fills in where the configuration is silent."""


def differences(parsed: ParsedConfig, served: ModelConfig) -> list[str]:
    """The fields of `served` that do not follow from the configuration as written, by their names there."""
    gpus = sorted({gpu for group in served.instance_group for gpu in group.gpus})
    try:
        wanted = normalise(parsed.config, gpus=gpus)
    except ConfigError:
        return [INSTANCES]
    names = (attribute.name for attribute in attrs.fields(ModelConfig))
    return [_shown(name, wanted, served) for name in names if _differs(name, parsed.given, wanted, served)]


def _differs(name: str, given: frozenset[str], wanted: ModelConfig, served: ModelConfig) -> bool:
    before, after = getattr(wanted, name), getattr(served, name)
    silent = name not in given if name != "scheduling" else before is None
    if name in _COMPLETED and silent:
        return False
    if name in ("input", "output"):
        return lost(before, after)
    return bool(before != after)


def _shown(name: str, wanted: ModelConfig, served: ModelConfig) -> str:
    if name != "scheduling":
        return name
    batching = isinstance(wanted.scheduling or served.scheduling, DynamicBatching)
    return "dynamic_batching" if batching else "scheduling"
