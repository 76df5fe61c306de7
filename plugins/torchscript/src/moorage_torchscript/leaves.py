"""Names for the tensors in the nested arguments and results of an exported program. Pure.

A tensor can be called by its number (`INPUT__0`, `OUTPUT__0`), by its path (`ARGS[0]`, `KWARGS[scale]`, `RESULT[key][1]`), or
by the name that this plugin gives it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from moorage.errors import Fault

Path = tuple[str | int, ...]


@frozen
class Leaf:
    """A tensor of a program: where it stands among the leaves, what it is called, what else it may be called."""

    position: int
    name: str
    aliases: tuple[str, ...]


def paths(specification: str) -> tuple[Path, ...]:
    """The path of each leaf of a tree, from its JSON form. Raises ValueError for a tree that has no such paths."""
    tree = json.loads(specification)
    if not isinstance(tree, list) or len(tree) != 2:
        raise ValueError("not the form [version, tree]")
    return tuple(_paths(tree[1], ()))


def input_leaves(
    found: Sequence[Path], positions: Sequence[int], arguments: Sequence[str] = (), names: Sequence[str] = ()
) -> tuple[Leaf, ...]:
    """Leaves of a call's arguments. `positions` are those that are tensors, `arguments` the names of the forward method's.

    `names` are what the graph calls the tensors at these positions, if it does.
    """
    leaves = []
    for number, position in enumerate(positions):
        path = found[position] if position < len(found) else ()
        ordinal = f"INPUT__{number}"
        others = (names[number],) if names else ()
        own = _own_input(path, arguments) or next(iter(others), ordinal)
        leaves.append(Leaf(position, own, (ordinal, *_argument(path), *others)))
    return tuple(leaves)


def output_leaves(found: Sequence[Path], positions: Sequence[int]) -> tuple[Leaf, ...]:
    """Leaves of a result: called by their keys if it is a dict, else by their numbers."""
    leaves = []
    for number, position in enumerate(positions):
        path = found[position] if position < len(found) else ()
        ordinal = f"OUTPUT__{number}"
        own = "_".join(map(str, path)) if path and isinstance(path[0], str) else ordinal
        leaves.append(Leaf(position, own, (ordinal, "RESULT" + _brackets(path))))
    return tuple(leaves)


def choose(names: Sequence[str], leaves: Sequence[Leaf], field: str) -> tuple[dict[str, Leaf], list[Fault]]:
    """The leaf of each name that has one, and the names that mean the same leaf."""
    chosen: dict[str, Leaf] = {}
    faults = []
    taken: dict[int, str] = {}
    known = _by_name(leaves)
    for number, name in enumerate(names):
        leaf = known.get(name)
        if leaf is None:
            continue
        if leaf.position in taken:
            message = f"'{name}' and '{taken[leaf.position]}' are the same {field} of the model"
            faults.append(Fault(message, field=f"{field}[{number}].name"))
        taken[leaf.position] = name
        chosen[name] = leaf
    return chosen, faults


def _by_name(leaves: Sequence[Leaf]) -> Mapping[str, Leaf]:
    """Leaves under all their names; an own name goes before another's alias."""
    return {alias: leaf for leaf in leaves for alias in leaf.aliases} | {leaf.name: leaf for leaf in leaves}


def _paths(node: Any, before: Path) -> Iterator[Path]:
    children, kind = node.get("children_spec") or [], node.get("type")
    if kind is None:
        yield before
        return
    context = node.get("context")
    keys = json.loads(context) if isinstance(context, str) else context
    named = isinstance(keys, list) and len(keys) == len(children) and all(isinstance(key, str) for key in keys)
    for number, child in enumerate(children):
        yield from _paths(child, (*before, keys[number] if named else number))


def _argument(path: Path) -> tuple[str, ...]:
    """`ARGS[…]` or `KWARGS[…]`: the first step of an argument's path is 0 for the one and 1 for the other."""
    if len(path) < 2:
        return ()
    return (("ARGS", "KWARGS")[int(path[0] == 1)] + _brackets(path[1:]),)


def _own_input(path: Path, arguments: Sequence[str]) -> str:
    """The argument's name, with the steps that lead into it; "" for an argument by position whose name is not known."""
    if len(path) < 2:
        return ""
    first = path[1]
    if path[0] == 0 and isinstance(first, int):
        if first >= len(arguments):
            return ""
        first = arguments[first]
    return "_".join(map(str, (first, *path[2:])))


def _brackets(path: Path) -> str:
    return "".join(f"[{step}]" for step in path)
