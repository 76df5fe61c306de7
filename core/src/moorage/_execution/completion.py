"""Completing a configuration while its version is loaded, and holding completion to its promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from moorage._repository import complete
from moorage.backend import Signature, VersionFiles
from moorage.config import KNOWN, normalise, validate
from moorage.config.parsed import ParsedConfig
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import ConfigError, Fault, PluginError

Completer = Callable[[ModelConfig, VersionFiles], ModelConfig | None]


def from_plugins(parsed: ParsedConfig, files: VersionFiles, completers: Sequence[tuple[str, Completer]]) -> ParsedConfig:
    """Let every plugin fill in what is open. Raises PluginError if one changes what the user has set."""
    for plugin, fill in completers:
        config = fill(parsed.config, files)
        if config is None:
            continue
        moved = _moved(parsed, config)
        if moved:
            raise PluginError(
                f"model '{parsed.config.name}': plugin '{plugin}' changed {', '.join(moved)}, which the configuration sets"
            )
        parsed = parsed.with_config(config)
    return parsed


def from_signature(parsed: ParsedConfig, signature: Signature, default_max_batch_size: int) -> ParsedConfig:
    """Fill in what the model's file declares."""
    return parsed.with_config(complete.fill(parsed, signature, default_max_batch_size))


def prepare(parsed: ParsedConfig, gpus: Sequence[int], platforms: Mapping[str, str], *, auto_complete: bool) -> ModelConfig:
    """The configuration as the backend is given it; with `auto_complete`, what the model's file may still tell can be open.

    Raises ConfigError with all faults that the file cannot heal.
    """
    faults = validate(parsed, {**KNOWN, **platforms}, complete=not auto_complete)
    if faults:
        raise ConfigError(faults, parsed.config.name)
    return normalise(parsed.config, gpus=gpus, source=parsed)


def finish(parsed: ParsedConfig, signature: Signature | None, gpus: Sequence[int], platforms: Mapping[str, str]) -> ModelConfig:
    """The configuration as it is served: checked as a whole, against the file's signature, defaults filled in.

    Raises ConfigError with all faults.
    """
    faults: list[Fault] = list(validate(parsed, {**KNOWN, **platforms}))
    if signature is not None and not faults:
        faults = list(complete.check(parsed, signature))
    if faults:
        raise ConfigError(faults, parsed.config.name)
    return normalise(parsed.config, gpus=gpus, source=parsed)


def shown(config: ModelConfig, signature: Signature | None) -> ModelConfig:
    """The configuration as metadata show it."""
    return config if signature is None else complete.exact(config, signature)


def _moved(parsed: ParsedConfig, config: ModelConfig) -> list[str]:
    """Fields that the user has set and that are different now. Only `max_batch_size` may be raised."""
    moved = []
    for name in parsed.given:
        attribute = "scheduling" if name in ("dynamic_batching", "sequence_batching", "ensemble_scheduling") else name
        before, after = getattr(parsed.config, attribute), getattr(config, attribute)
        if attribute in ("input", "output"):
            changed = lost(before, after)
        elif attribute == "max_batch_size":
            changed = after < before
        else:
            changed = before != after
        if changed:
            moved.append(name)
    return moved


def lost(before: Sequence[ModelInput | ModelOutput], after: Sequence[ModelInput | ModelOutput]) -> bool:
    """Whether a tensor of the user's is gone, or a field of one that was set has changed."""
    kept = {item.name: item for item in after}
    return any(item.name not in kept or _contradicts(item, kept[item.name]) for item in before)


def _contradicts(given: ModelInput | ModelOutput, now: ModelInput | ModelOutput) -> bool:
    blank = type(given)()
    return any(
        getattr(given, field.name) not in (getattr(blank, field.name), getattr(now, field.name))
        for field in attrs.fields(type(given))
    )
