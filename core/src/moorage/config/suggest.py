"""What a user probably meant by a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SYNONYMS = {
    "shape": "dims",
    "dimensions": "dims",
    "dtype": "data_type",
    "type": "data_type",
    "datatype": "data_type",
    "batch_size": "max_batch_size",
    "instances": "instance_group",
    "instance_count": "count",
    "scheduling": "dynamic_batching",
    "batching": "dynamic_batching",
    "ensemble": "ensemble_scheduling",
    "steps": "step",
    "filename": "default_model_filename",
    "version": "version_policy",
    "warmup": "model_warmup",
    "decoupled": "model_transaction_policy",
    "TYPE_BYTES": "TYPE_STRING",
    "TYPE_STR": "TYPE_STRING",
    "TYPE_FLOAT": "TYPE_FP32",
    "TYPE_DOUBLE": "TYPE_FP64",
    "TYPE_HALF": "TYPE_FP16",
    "TYPE_FLOAT16": "TYPE_FP16",
    "TYPE_FLOAT32": "TYPE_FP32",
    "TYPE_FLOAT64": "TYPE_FP64",
    "TYPE_BFLOAT16": "TYPE_BF16",
    "TYPE_INT": "TYPE_INT32",
    "TYPE_LONG": "TYPE_INT64",
    "TYPE_BOOLEAN": "TYPE_BOOL",
}
_LONGEST = 100
_PREFIXES = ("TYPE_", "KIND_", "FORMAT_", "PRIORITY_", "BATCH_", "CONTROL_SEQUENCE_")


def nearest_field(name: str, known: Iterable[str]) -> str:
    """The field that was probably meant, or "" when nothing comes near."""
    names = list(known)
    synonym = _SYNONYMS.get(name.lower(), "")
    if synonym in names:
        return synonym
    return _closest(name.lower(), {one: one for one in names})


def nearest_value(name: str, known: Iterable[str]) -> str:
    """The enum value that was probably meant (other case, a prefix left out, another framework's name), or ""."""
    names = list(known)
    upper = name.upper()
    for candidate in (upper, *(prefix + upper for prefix in _PREFIXES)):
        found = _SYNONYMS.get(candidate, candidate)
        if found in names:
            return found
    return _closest(upper, {one: one for one in names} | {_bare(one): one for one in names})


def _bare(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _closest(name: str, known: dict[str, str]) -> str:
    if len(name) > _LONGEST:
        return ""
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return known[found[0]] if found else ""
