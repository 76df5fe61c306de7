"""All that is wrong with a configuration beyond its grammar: Triton's rules, each fault with its place and what to write."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.config.parsed import ParsedConfig
from moorage.config.platforms import KNOWN
from moorage.config.validation.batching import batching_faults
from moorage.config.validation.ensemble import ensemble_faults
from moorage.config.validation.files import file_faults
from moorage.config.validation.instances import instance_faults, placement_faults
from moorage.config.validation.model import model_faults
from moorage.config.validation.sequence import sequence_faults
from moorage.config.validation.tensors import tensor_faults
from moorage.config.validation.warmup import warmup_faults
from moorage.errors import Fault

__all__ = ["placement_faults", "validate"]


def validate(parsed: ParsedConfig, platforms: Mapping[str, str] = KNOWN, *, complete: bool = True) -> list[Fault]:
    """Every fault of the configuration, in the order of the file.

    `platforms` maps each platform to its backend; add those of the plugins to `KNOWN`. With `complete` False the
    configuration is one that will still be filled in from the model's own file: data types, dims and a `max_batch_size`
    that are not given are no faults, nor is what depends on them.
    """
    faults = [
        *model_faults(parsed, platforms),
        *tensor_faults(parsed, platforms, complete=complete),
        *batching_faults(parsed, complete=complete),
        *sequence_faults(parsed, complete=complete),
        *ensemble_faults(parsed),
        *instance_faults(parsed, platforms),
        *warmup_faults(parsed),
        *file_faults(parsed),
    ]
    return sorted(faults, key=_place)


def _place(fault: Fault) -> tuple[bool, int, int]:
    return (fault.line == 0, fault.line, fault.column)
