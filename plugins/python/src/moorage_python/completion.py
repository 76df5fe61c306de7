"""Fills a configuration with what the model's `auto_complete_config` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from moorage.backend import VersionFiles
from moorage.config import parse_json
from moorage.config.schema import DynamicBatching, ModelConfig, ModelInput, ModelOutput, TransactionPolicy
from moorage.errors import ConfigError, Fault, ModelError
from moorage.types import DataType
from moorage_python.runtime.host import HostFailure
from moorage_python.source import DEFAULT_FILE, config_json, open_host


def complete(config: ModelConfig, files: VersionFiles) -> ModelConfig | None:
    """The configuration, filled; None if the model has no `auto_complete_config`. Raises ModelError if that raises."""
    if files.path is None:
        return None
    file = files.path / (config.default_model_filename or DEFAULT_FILE)
    host = open_host(files.model_name, files.version, file, files.path, files.model_path or files.path.parent)
    try:
        filled = host.auto_complete(config_json(config))
        return None if filled is None else merge(config, filled)
    except HostFailure as failure:
        raise ModelError(f"model '{files.model_name}' version {files.version}: {failure}") from failure.__cause__
    finally:
        host.close()


def merge(config: ModelConfig, filled: Mapping[str, Any]) -> ModelConfig:
    """The configuration with what a model may set: its tensors, batching and transaction policy."""
    changes: dict[str, Any] = {
        "max_batch_size": int(filled.get("max_batch_size", 0)),
        "input": _tensors(config, ModelInput, config.input, filled.get("input", ())),
        "output": _tensors(config, ModelOutput, config.output, filled.get("output", ())),
    }
    if config.scheduling is None and "dynamic_batching" in filled:
        changes["scheduling"] = _batching(filled["dynamic_batching"])
    policy = filled.get("model_transaction_policy")
    if policy is not None:
        changes["model_transaction_policy"] = TransactionPolicy(decoupled=bool(policy.get("decoupled", False)))
    return evolve(config, **changes)


def _batching(filled: Mapping[str, Any]) -> DynamicBatching:
    scheduling = parse_json({"dynamic_batching": dict(filled)}).config.scheduling if filled else None
    return scheduling if isinstance(scheduling, DynamicBatching) else DynamicBatching()


def _tensors(
    config: ModelConfig, kind: Any, given: Iterable[ModelInput | ModelOutput], filled: Iterable[Mapping[str, Any]]
) -> tuple[Any, ...]:
    """The tensors of the file with what was open filled in, then those that the model has added."""
    known = {tensor.name: tensor for tensor in given}
    tensors = []
    for one in filled:
        changes: dict[str, Any] = {"data_type": _datatype(config, one), "dims": tuple(int(size) for size in one["dims"])}
        if "optional" in one and kind is ModelInput:
            changes["optional"] = bool(one["optional"])
        tensors.append(evolve(known.get(one["name"]) or kind(name=one["name"]), **changes))
    return tuple(tensors)


def _datatype(config: ModelConfig, tensor: Mapping[str, Any]) -> DataType:
    found = DataType.from_config(tensor["data_type"])
    if found is None:
        fault = Fault(
            f"auto_complete_config gives '{tensor['name']}' the unknown data_type '{tensor['data_type']}'",
            advice="write one such as TYPE_FP32",
        )
        raise ConfigError([fault], config.name)
    return found
