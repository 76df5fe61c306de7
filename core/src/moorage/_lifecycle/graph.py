"""What models owe to the models that they use (the steps of an ensemble): pure decisions."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeVar

from attrs import frozen

from moorage.control import ModelId
from moorage.errors import Code, ErrorRecord

T = TypeVar("T")


class Part(enum.Enum):
    """How a model that another one uses stands."""

    SERVING = "serves"
    COMING = "is loading"
    """A rollout of it runs, whether or not an older version serves."""
    LEAVING = "is being unloaded"
    FAILED = "failed to load"
    ABSENT = "is not loaded"
    AMBIGUOUS = "is in several repositories"


@frozen
class PartView:
    """A part with what is known of why it does not serve."""

    state: Part
    reason: str = ""


_BROKEN = frozenset({Part.LEAVING, Part.FAILED, Part.ABSENT, Part.AMBIGUOUS})

_ADVICE = {
    Part.ABSENT: "put it into a model repository, or take it out of the steps",
    Part.AMBIGUOUS: "name it as NAMESPACE::NAME",
}


def resolve(name: str, ids: Iterable[ModelId]) -> tuple[ModelId, ...]:
    """The models that a step's name, with or without namespace, can mean."""
    return tuple(model_id for model_id in ids if name in {model_id.name, str(model_id)})


def refusal(dependent: ModelId, parts: Mapping[str, PartView]) -> ErrorRecord | None:
    """Why a model cannot be loaded because of the models it uses, all of them; None if nothing stands against it."""
    complaints = [_complaint(name, part) for name, part in sorted(parts.items()) if part.state in _BROKEN]
    if not complaints:
        return None
    return ErrorRecord(Code.INVALID_ARGUMENT, f"model '{dependent}' cannot be loaded: {'; '.join(complaints)}")


def pending(parts: Mapping[str, PartView]) -> tuple[str, ...]:
    """The parts that are still to come."""
    return tuple(sorted(name for name, part in parts.items() if part.state is Part.COMING))


def _complaint(name: str, part: PartView) -> str:
    text = f"its step '{name}' {part.state.value}"
    detail = part.reason or _ADVICE.get(part.state, "")
    return f"{text} ({detail})" if detail else text


def cycle(start: T, edges: Callable[[T], Collection[T]]) -> tuple[T, ...] | None:
    """A way from `start` back to itself (both ends named), None if there is none. `edges` gives what a node uses."""
    came_from: dict[T, T] = {}
    ahead = [start]
    while ahead:
        node = ahead.pop()
        for used in edges(node):
            if used == start:
                return (*_path(came_from, start, node), start)
            if used not in came_from:
                came_from[used] = node
                ahead.append(used)
    return None


def _path(came_from: Mapping[T, T], start: T, node: T) -> list[T]:
    path = [node]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def cycle_error(path: tuple[ModelId, ...]) -> ErrorRecord:
    """Names the models of a circle in order."""
    steps = " -> ".join(f"'{model_id}'" for model_id in path)
    message = f"model '{path[0]}' cannot be loaded: its steps form a circle, {steps}; remove one of these steps"
    return ErrorRecord(Code.INVALID_ARGUMENT, message)
