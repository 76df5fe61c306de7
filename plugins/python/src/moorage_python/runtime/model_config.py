"""The configuration as models see it: as JSON, and as the object that `auto_complete_config` fills."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_SCHEDULERS = ("sequence_batching", "ensemble_scheduling")


class ModelConfig:
    """What `auto_complete_config` is given, fills and returns. Setters raise ValueError if the configuration file disagrees."""

    def __init__(self, model_config: str) -> None:
        self._model_config: dict[str, Any] = json.loads(model_config)

    def as_dict(self) -> dict[str, Any]:
        """The configuration as a dictionary, to read."""
        return self._model_config

    def set_max_batch_size(self, max_batch_size: int) -> None:
        """Set the greatest batch. A value in the file may be raised, not lowered."""
        given = self._model_config.get("max_batch_size", 0)
        if given > max_batch_size:
            raise self._clash(
                "max_batch_size", given, max_batch_size, "raise the one in the code, or remove the one in the file"
            )
        self._model_config["max_batch_size"] = max_batch_size

    def set_dynamic_batching(self) -> None:
        """Let the server form batches, unless the file already says how."""
        for scheduler in _SCHEDULERS:
            if scheduler in self._model_config:
                raise self._clash("the scheduler", scheduler, "dynamic_batching", "only one is possible")
        self._model_config.setdefault("dynamic_batching", {})

    def add_input(self, input: Mapping[str, Any]) -> None:  # noqa: A002 - the name is Triton's
        """Add an input: `name`, `data_type`, `dims` and, if wanted, `optional`."""
        self._add("input", input, ("name", "data_type", "dims"), ("optional",))

    def add_output(self, output: Mapping[str, Any]) -> None:
        """Add an output: `name`, `data_type` and `dims`."""
        self._add("output", output, ("name", "data_type", "dims"), ())

    def set_model_transaction_policy(self, transaction_policy_dict: Mapping[str, Any]) -> None:
        """Say whether the model is decoupled: `{"decoupled": True}`."""
        for key in transaction_policy_dict:
            if key != "decoupled":
                raise ValueError(f"{self._hook()}: model_transaction_policy has no '{key}'; it has 'decoupled'")
        policy = self._model_config.setdefault("model_transaction_policy", {})
        if "decoupled" in transaction_policy_dict:
            wanted = transaction_policy_dict["decoupled"]
            given = policy.setdefault("decoupled", wanted)
            if given != wanted:
                raise self._clash("model_transaction_policy.decoupled", given, wanted, "make them agree")

    def _add(self, role: str, tensor: Mapping[str, Any], needed: Sequence[str], optional: Sequence[str]) -> None:
        for key in tensor:
            if key not in needed and key not in optional:
                known = ", ".join((*needed, *optional))
                raise ValueError(
                    f"{self._hook()}: {role} '{tensor.get('name', '')}' has no property '{key}'; it may have {known}"
                )
        for key in needed:
            if key not in tensor:
                raise ValueError(f"{self._hook()}: {role} '{tensor.get('name', '')}' lacks '{key}'")
        tensors = self._model_config.setdefault(role, [])
        for given in tensors:
            if given["name"] == tensor["name"]:
                self._merge(role, given, tensor)
                return
        tensors.append(dict(tensor))

    def _merge(self, role: str, given: dict[str, Any], tensor: Mapping[str, Any]) -> None:
        """Check a tensor against that of the file, and fill what the file leaves open."""
        stated = {
            "data_type": given.get("data_type", "TYPE_INVALID") != "TYPE_INVALID",
            "dims": bool(given.get("dims")),
            "optional": "optional" in given and "optional" in tensor,
        }
        for key, is_stated in stated.items():
            if is_stated and given[key] != tensor[key]:
                raise self._clash(f"{role} '{tensor['name']}' {key}", given[key], tensor[key], "make them agree")
        given.update(tensor)

    def _clash(self, what: str, given: object, wanted: object, advice: str) -> ValueError:
        return ValueError(f"{what} is {given} in the configuration file, but {wanted} in {self._hook()}: {advice}")

    def _hook(self) -> str:
        return f"auto_complete_config of model '{self._model_config.get('name', '')}'"


def get_input_config_by_name(model_config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The configuration of an input, out of the model's; None if it has none of this name."""
    return _named(model_config.get("input", ()), name)


def get_output_config_by_name(model_config: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    """The configuration of an output, out of the model's; None if it has none of this name."""
    return _named(model_config.get("output", ()), name)


def using_decoupled_model_transaction_policy(model_config: Mapping[str, Any]) -> bool:
    """Whether a request may have any number of responses."""
    return bool(model_config.get("model_transaction_policy", {}).get("decoupled", False))


def _named(tensors: Sequence[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((tensor for tensor in tensors if tensor["name"] == name), None)
