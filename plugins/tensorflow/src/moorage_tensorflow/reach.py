"""What of a graph takes part in computing some tensors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

_WRITES = re.compile(
    r"Assign|Resource(Sparse)?(Scatter|Apply|Strided)|(Sparse)?Apply[A-Z]"
    r"|Scatter(Nd)?(Add|Sub|Mul|Div|Min|Max|Update)$|(Resource)?CountUpTo|LookupTable(Insert|Remove)"
    r"|Queue(Enqueue|Dequeue)|Stack(Push|Pop)|(Ordered)?(Map)?(Uns|S)tage|Barrier(Insert|Take)"
)
"""Types of operations that change what a session keeps from one run to the next."""


def reachable(graph_def: Any, tensors: Iterable[str]) -> Iterator[Any]:
    """The nodes that the tensors need, and those inside the functions that these nodes call."""
    nodes = {node.name: node for node in graph_def.node}
    functions = {function.signature.name: function for function in graph_def.library.function}
    waiting = [_node(tensor) for tensor in tensors]
    seen = set(waiting)
    called: set[str] = set()
    while waiting:
        node = nodes.get(waiting.pop())
        if node is None:
            continue
        yield node
        sources = {_node(source) for source in node.input} - seen
        seen |= sources
        waiting += sources
        yield from _inside(node, functions, called)


def keeps_state(graph_def: Any, tensors: Iterable[str]) -> bool:
    """Whether computing these tensors changes variables or tables, so that one run may see what another one did."""
    return any(writes(node.op) for node in reachable(graph_def, tensors))


def writes(operation: str) -> bool:
    """Whether operations of this type change variables, tables or queues."""
    return _WRITES.match(operation) is not None


def _inside(node: Any, functions: dict[str, Any], called: set[str]) -> Iterator[Any]:
    """All nodes of the functions that a node calls, and that were not visited before."""
    waiting = [node]
    while waiting:
        for name in _calls(waiting.pop()):
            if name in functions and name not in called:
                called.add(name)
                body = list(functions[name].node_def)
                yield from body
                waiting += body


def _calls(node: Any) -> Iterator[str]:
    yield node.op
    for value in node.attr.values():
        if value.HasField("func"):
            yield value.func.name
        for function in value.list.func:
            yield function.name


def _node(source: str) -> str:
    """The node behind a reference such as `name`, `name:1` or `^name`."""
    return source.lstrip("^").partition(":")[0]
