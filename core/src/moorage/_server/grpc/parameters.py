"""Parameters of inference requests and responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from attrs import define, field

from moorage._server.grpc.lane import Metadata
from moorage.errors import RequestError
from moorage.types import ParameterValue

RESERVED_PREFIX: Final = "triton_"
EMPTY_FINAL: Final = "triton_enable_empty_final_response"
FINAL: Final = "triton_final_response"

_GREATEST_INT64: Final = 2**63 - 1


@define
class Settings:
    """What a request's parameters say. `custom` are those that the model is given."""

    correlation_id: int | str = 0
    sequence_start: bool = False
    sequence_end: bool = False
    priority: int = 0
    timeout_us: int = 0
    empty_final: bool = False
    custom: dict[str, ParameterValue] = field(factory=dict)


_SETTINGS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "sequence_id": ("correlation_id", ("int64_param", "uint64_param", "string_param")),
    "sequence_start": ("sequence_start", ("bool_param",)),
    "sequence_end": ("sequence_end", ("bool_param",)),
    "priority": ("priority", ("int64_param", "uint64_param")),
    "timeout": ("timeout_us", ("int64_param", "uint64_param")),
    EMPTY_FINAL: ("empty_final", ("bool_param",)),
}
"""Parameters with a meaning of their own -> attribute of Settings, and the kinds they may have."""


def read_settings(parameters: Mapping[str, Any]) -> Settings:
    """The settings in the parameters of a ModelInferRequest. Raises RequestError naming the parameter."""
    settings = Settings()
    for name, parameter in parameters.items():
        kind = parameter.WhichOneof("parameter_choice")
        if kind is None:
            raise RequestError(f"parameter '{name}' has no value")
        if name in _SETTINGS:
            attribute, kinds = _SETTINGS[name]
            setattr(settings, attribute, _checked(name, kind, kinds, getattr(parameter, kind)))
        elif name.startswith(RESERVED_PREFIX):
            raise RequestError(
                f"parameter '{name}': names that begin with '{RESERVED_PREFIX}' are reserved, but for {EMPTY_FINAL}"
            )
        else:
            settings.custom[name] = getattr(parameter, kind)
    return settings


def _checked(name: str, kind: str, kinds: tuple[str, ...], value: ParameterValue) -> ParameterValue:
    if kind not in kinds:
        raise RequestError(f"parameter '{name}' is a {kind}, expected {' or '.join(kinds)}")
    if kind == "int64_param" and name != "sequence_id" and int(value) < 0:
        raise RequestError(f"parameter '{name}' is {value}, expected a number of at least 0")
    return value


def read_classification(parameters: Mapping[str, Any], output: str) -> int:
    """How many classes are asked for instead of an output, 0 for none. Raises RequestError."""
    parameter = parameters.get("classification")
    if parameter is None:
        return 0
    kind = parameter.WhichOneof("parameter_choice")
    if kind not in ("int64_param", "uint64_param"):
        raise RequestError(f"output '{output}': parameter 'classification' is a {kind}, expected int64_param")
    count = int(getattr(parameter, kind))
    if count < 0:
        raise RequestError(f"output '{output}': classification is {count}, expected a number of at least 0")
    return count


def refuse_shared_memory(parameters: Mapping[str, Any], tensor: str) -> None:
    """Raise RequestError if a tensor is to be in shared memory."""
    region = parameters.get("shared_memory_region")
    if region is not None:
        raise RequestError(f"{tensor}: there is no shared memory region '{region.string_param}'")


def forwarded(metadata: Metadata, pattern: re.Pattern[str]) -> dict[str, ParameterValue]:
    """The metadata that become parameters: those whose key the pattern is found in."""
    return {key: value for key, value in metadata if isinstance(value, str) and pattern.search(key)}


def write_parameter(message: Any, value: ParameterValue) -> None:
    """Set an InferParameter to a value."""
    if isinstance(value, bool):
        message.bool_param = value
    elif isinstance(value, int):
        if value > _GREATEST_INT64:
            message.uint64_param = value
        else:
            message.int64_param = value
    elif isinstance(value, float):
        message.double_param = value
    else:
        message.string_param = value
