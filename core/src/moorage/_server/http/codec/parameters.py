"""The parameters of a request: those with a meaning here, and those for the model."""

from __future__ import annotations

from typing import Any, Final

from moorage.errors import RequestError
from moorage.types import InferRequest

RESERVED: Final = frozenset(
    {
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "binary_data_output",
        "binary_data_size",
    }
)
RESERVED_PREFIX: Final = "triton_"
_LARGEST = 2**63 - 1


def apply_parameters(request: InferRequest, parameters: dict[str, Any]) -> bool:
    """Put the parameters where they belong in the request; the result is `binary_data_output`."""
    binary = False
    for key, value in parameters.items():
        match key:
            case "sequence_id":
                request.correlation_id = _sequence_id(value)
            case "sequence_start":
                request.sequence_start = _flag(key, value)
            case "sequence_end":
                request.sequence_end = _flag(key, value)
            case "priority":
                request.priority = whole_number(key, value)
            case "timeout":
                request.timeout_us = whole_number(key, value)
            case "binary_data_output":
                binary = _flag(key, value)
            case "binary_data_size":
                continue
            case _:
                request.parameters[key] = model_parameter(key, value)
    return binary


def whole_number(key: str, value: object) -> int:
    """A parameter that counts something."""
    if type(value) is not int or not 0 <= value <= _LARGEST:
        raise RequestError(f"parameter `{key}` must be a whole number from 0, got {value!r:.60}")
    return value


def _sequence_id(value: object) -> int | str:
    if type(value) is int and 0 <= value < 2**64:
        return value
    if isinstance(value, str):
        return value
    raise RequestError(f"parameter `sequence_id` must be a whole number from 0 or a string, got {value!r:.60}")


def _flag(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise RequestError(f"parameter `{key}` must be true or false, got {value!r:.60}")
    return value


def model_parameter(key: str, value: object) -> str | int | float | bool:
    """A parameter that the model is given."""
    if key.startswith(RESERVED_PREFIX):
        raise RequestError(f"parameter `{key}`: names that begin with `{RESERVED_PREFIX}` are reserved")
    if not isinstance(value, str | int | float):
        raise RequestError(f"parameter `{key}` must be a string, a number or a boolean, got {value!r:.60}")
    if type(value) is int and not -_LARGEST - 1 <= value <= _LARGEST:
        raise RequestError(f"parameter `{key}` does not fit in 64 bits")
    return value
