"""What ONNX Runtime does not tell about a file: which weights lie outside it, and which tensors have no rank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from attrs import frozen

from moorage_onnx.wire import WireField, fields, texts

# Field numbers of onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_TENSOR, _GRAPH_INPUT, _GRAPH_OUTPUT, _GRAPH_SPARSE = 1, 5, 11, 12, 15
_NODE_ATTRIBUTE = 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS = 5, 6, 10, 11
_TENSOR_EXTERNAL = 13
_DEEPEST = 50
_VALUE_NAME, _VALUE_TYPE, _TYPE_TENSOR, _TENSOR_SHAPE = 1, 2, 1, 2


@frozen
class FileFacts:
    """`external` are the relative paths of files with weights; `unranked` the inputs and outputs without any shape."""

    external: frozenset[str]
    unranked: frozenset[str]


def inspect_file(path: Path) -> FileFacts:
    """Look into an ONNX file. A broken one yields what was found up to the break; loading it will say what is wrong."""
    external: set[str] = set()
    unranked: set[str] = set()
    with path.open("rb") as file:
        size = file.seek(0, 2)
        for part in fields(file, 0, size):
            if part.number == _MODEL_GRAPH:
                external.update(_locations(file, part))
                unranked.update(_unranked(file, part))
    return FileFacts(frozenset(external), frozenset(unranked))


def _locations(file: BinaryIO, graph: WireField, depth: int = 0) -> Iterator[str]:
    """The `location` of every tensor of a graph and of the graphs inside it, down to where ONNX Runtime gives up."""
    if depth > _DEEPEST:
        return
    for part in fields(file, graph.begin, graph.end):
        if part.number == _GRAPH_TENSOR:
            yield from _location(file, part)
        elif part.number == _GRAPH_SPARSE:
            for tensor in fields(file, part.begin, part.end):
                yield from _location(file, tensor)
        elif part.number == _GRAPH_NODE:
            for inner in fields(file, part.begin, part.end):
                if inner.number == _NODE_ATTRIBUTE:
                    yield from _in_attribute(file, inner, depth)


def _in_attribute(file: BinaryIO, attribute: WireField, depth: int) -> Iterator[str]:
    for part in fields(file, attribute.begin, attribute.end):
        if part.number in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            yield from _location(file, part)
        elif part.number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            yield from _locations(file, part, depth + 1)


def _location(file: BinaryIO, tensor: WireField) -> Iterator[str]:
    for part in fields(file, tensor.begin, tensor.end):
        if part.number == _TENSOR_EXTERNAL:
            entry = texts(file, part)
            if entry.get(1) == "location":
                yield entry.get(2, "")


def _unranked(file: BinaryIO, graph: WireField) -> Iterator[str]:
    for part in fields(file, graph.begin, graph.end):
        if part.number in (_GRAPH_INPUT, _GRAPH_OUTPUT) and not _has_shape(file, part):
            yield texts(file, part).get(_VALUE_NAME, "")


def _has_shape(file: BinaryIO, value: WireField) -> bool:
    shapes = [
        shape
        for kind in fields(file, value.begin, value.end)
        if kind.number == _VALUE_TYPE
        for tensor in fields(file, kind.begin, kind.end)
        if tensor.number == _TYPE_TENSOR
        for shape in fields(file, tensor.begin, tensor.end)
        if shape.number == _TENSOR_SHAPE
    ]
    return bool(shapes)
