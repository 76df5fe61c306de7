"""Which tensor of a configuration is which argument or result of a model: Triton's three conventions. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from attrs import frozen

from moorage.errors import Fault

DELIMITER = "__"


class Convention(enum.Enum):
    """How names are read; the first that all names of a configuration follow is taken."""

    ARGUMENT = "names of the forward method's arguments"
    INDEX = "NAME__INDEX"
    ORDER = "the order of the configuration"


@frozen
class Naming:
    """Positions by name, and what is wrong with the names."""

    convention: Convention
    positions: Mapping[str, int]
    faults: tuple[Fault, ...] = ()


def index_of(name: str) -> int | None:
    """The number after the first `__` of a name, or None."""
    _, delimiter, index = name.partition(DELIMITER)
    return int(index) if delimiter and index.isascii() and index.isdigit() and len(index) < 7 else None


def place(names: Sequence[str], arguments: Sequence[str], count: int | None, *, field: str) -> Naming:
    """Give each name a position.

    `arguments` are names that a position can be asked for by, `count` is how many positions there are (None: not known).
    `field` is "input" or "output", for the faults.
    """
    convention, positions = _positions(names, arguments)
    faults = _swapped(names, arguments, field) if convention is Convention.ORDER else []
    taken: dict[int, str] = {}
    for number, name in enumerate(names):
        position = positions[name]
        where = f"{field}[{number}].name"
        if count is not None and position >= count:
            faults.append(Fault(_outside(name, position, arguments, count, field), field=where))
        elif position in taken:
            faults.append(Fault(f"'{name}' and '{taken[position]}' are both {field} {position} of the model", field=where))
        taken[position] = name
    return Naming(convention, positions, tuple(faults))


def _positions(names: Sequence[str], arguments: Sequence[str]) -> tuple[Convention, dict[str, int]]:
    if arguments and all(name in arguments for name in names):
        return Convention.ARGUMENT, {name: arguments.index(name) for name in names}
    indices = {name: index_of(name) for name in names}
    known = {name: index for name, index in indices.items() if index is not None}
    if len(known) == len(names):
        return Convention.INDEX, known
    return Convention.ORDER, {name: number for number, name in enumerate(names)}


def _swapped(names: Sequence[str], arguments: Sequence[str], field: str) -> list[Fault]:
    """Names of arguments that the order of the configuration would put in the place of other arguments."""
    return [
        Fault(
            f"'{name}' is argument {arguments.index(name)} of the model, but stands at {number}, and as not all names are "
            f"arguments ({', '.join(arguments)}) their order counts",
            field=f"{field}[{number}].name",
            advice="give all inputs the names of arguments, or put them in the model's order",
        )
        for number, name in enumerate(names)
        if name in arguments and arguments.index(name) != number
    ]


def _outside(name: str, position: int, arguments: Sequence[str], count: int, field: str) -> str:
    listed = f": {', '.join(arguments)}" if arguments else ""
    return f"'{name}' would be {field} {position}, counted from 0, but the model has {count} {field}(s){listed}"
