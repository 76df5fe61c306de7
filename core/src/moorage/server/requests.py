"""From arguments of a call to a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict

import numpy as np

from moorage.errors import RequestError
from moorage.types import LATEST, DataType, InferRequest, ParameterValue, RequestedOutput, Tensor, parse_version

MICROSECONDS: Final = 1_000_000

Inputs = Mapping[str, Any]
"""Input name to array. What is no array is made one as by `numpy.asarray`."""


class RequestOptions(TypedDict, total=False):
    """What can be said of a request besides its inputs."""

    version: int | str | None
    """The version to ask; None for the newest that serves."""
    outputs: Sequence[str | RequestedOutput]
    """The outputs to give back, all if empty. `RequestedOutput(name, classification=3)` asks for the top three classes."""
    parameters: Mapping[str, ParameterValue] | None
    """Parameters for the model."""
    request_id: str
    """Comes back with the result."""
    correlation_id: int | str
    """The sequence that the request belongs to; 0 or "" for none."""
    sequence_start: bool
    sequence_end: bool
    priority: int
    """For the scheduler; 0 for the model's default."""
    timeout: float | None
    """Seconds to wait for the result, in a stream for each response; None waits for ever. The scheduler sees it, too."""


def build(
    name: str,
    inputs: Inputs,
    *,
    version: int | str | None = None,
    outputs: Sequence[str | RequestedOutput] = (),
    parameters: Mapping[str, ParameterValue] | None = None,
    request_id: str = "",
    correlation_id: int | str = 0,
    sequence_start: bool = False,
    sequence_end: bool = False,
    priority: int = 0,
    timeout: float | None = None,
) -> InferRequest:
    """The request. Raises RequestError naming the argument that makes none."""
    return InferRequest(
        name,
        {key: tensor(key, value) for key, value in inputs.items()},
        LATEST if version is None else version_number(version),
        request_id,
        _requested(outputs) if outputs else (),
        dict(parameters) if parameters else {},
        correlation_id,
        sequence_start,
        sequence_end,
        priority,
        0 if timeout is None else max(1, round(timeout * MICROSECONDS)),
    )


def version_number(version: int | str | None) -> int:
    """The version that is meant. Raises RequestError for what is none."""
    if version is None:
        return LATEST
    number = parse_version(str(version))
    if number is None:
        raise RequestError(f"version {version!r} is none; write a whole number, or leave it out for the newest")
    return number


def tensor(name: str, value: Any) -> Tensor:
    """The tensor of an array. It shares the array's memory but for strings and foreign byte orders, and cannot be written to.

    Raises RequestError for arrays whose elements no tensor can hold.
    """
    array = value if isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.kind in "OSUT":
        return Tensor(name, DataType.BYTES, _byte_strings(name, array))
    datatype = DataType.from_numpy(array.dtype)
    if datatype is None:
        array = array.astype(array.dtype.newbyteorder("="))
        datatype = DataType.from_numpy(array.dtype)
    if datatype is None:
        raise RequestError(f"input '{name}' is an array of {array.dtype}, which no data type of a model can hold")
    shared = array.view()
    shared.flags.writeable = False
    return Tensor(name, datatype, shared)


def _byte_strings(name: str, array: np.ndarray) -> np.ndarray:
    elements = array.astype(object)
    flat = elements.reshape(-1)
    for index, element in enumerate(flat):
        if isinstance(element, str):
            flat[index] = element.encode()
        elif not isinstance(element, bytes):
            raise RequestError(f"input '{name}' holds {element!r}; an array of objects may hold text and bytes only")
    return flat.reshape(array.shape)


def _requested(outputs: Sequence[str | RequestedOutput]) -> tuple[RequestedOutput, ...]:
    names = [outputs] if isinstance(outputs, str) else outputs
    return tuple(RequestedOutput(one) if isinstance(one, str) else one for one in names)
