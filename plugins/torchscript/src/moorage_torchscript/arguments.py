"""The arguments and results of a TorchScript module's forward method, as far as the file tells."""

from __future__ import annotations

import enum
from typing import Any

from attrs import frozen


class Shape(enum.Enum):
    """What an argument takes, or a result is."""

    TENSOR = "Tensor"
    TEXTS = "List[str]"
    TENSORS = "List[Tensor]"
    TABLE = "Dict[str, Tensor]"
    INT = "int"
    FLOAT = "float"
    BOOL = "bool"
    TEXT = "str"
    TUPLE = "Tuple"
    OTHER = "other"


SCALARS = frozenset({Shape.INT, Shape.FLOAT, Shape.BOOL, Shape.TEXT})


@frozen
class Argument:
    """One argument. `text` is its type as TorchScript writes it; `default` counts if it is `optional`."""

    name: str
    shape: Shape
    text: str
    optional: bool = False
    default: Any = None


@frozen
class Result:
    """What a call gives: `parts` are the members of a tuple; `count` is how many outputs that makes, None if it is open."""

    shape: Shape
    text: str
    parts: tuple[Shape, ...] = ()

    @property
    def count(self) -> int | None:
        if self.shape is Shape.TUPLE:
            return len(self.parts)
        return 1 if self.shape in (Shape.TENSOR, Shape.TEXTS) else None


_KINDS = {
    "TensorType": Shape.TENSOR,
    "IntType": Shape.INT,
    "FloatType": Shape.FLOAT,
    "BoolType": Shape.BOOL,
    "StringType": Shape.TEXT,
    "TupleType": Shape.TUPLE,
}


def read_arguments(schema: Any) -> tuple[Argument, ...]:
    """The arguments of a `FunctionSchema`, without the module itself."""
    return tuple(_argument(argument) for argument in schema.arguments[1:])


def read_result(schema: Any) -> Result:
    """What a `FunctionSchema` returns."""
    kind = schema.returns[0].type
    shape = _shape(kind)
    parts = tuple(_shape(element) for element in kind.elements()) if shape is Shape.TUPLE else ()
    return Result(shape, str(kind), parts)


def _argument(argument: Any) -> Argument:
    kind, optional = argument.type, argument.has_default_value()
    default = argument.default_value if optional else None
    text = str(kind)
    if kind.kind() == "OptionalType":
        kind, optional = kind.getElementType(), True
    return Argument(argument.name, _shape(kind), text, optional, default)


def _shape(kind: Any) -> Shape:
    name = kind.kind()
    if name == "ListType":
        return {Shape.TEXT: Shape.TEXTS, Shape.TENSOR: Shape.TENSORS}.get(_shape(kind.getElementType()), Shape.OTHER)
    if name == "DictType":
        fits = kind.getKeyType().kind() == "StringType" and kind.getValueType().kind() == "TensorType"
        return Shape.TABLE if fits else Shape.OTHER
    return _KINDS.get(name, Shape.OTHER)
