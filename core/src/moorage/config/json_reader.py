"""Configurations as JSON: reading, as leniently as Triton does."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any

from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.json_nodes import JsonSyntaxError, Member, Node, Variable, scan, wrap
from moorage.config.parsed import ParsedConfig, item_path
from moorage.config.scalars import WrongValueError, check_range, enum_advice, single
from moorage.config.suggest import nearest_field
from moorage.config.templates import block_fault, fill_text, fill_value, whole_variable
from moorage.config.tokens import Positions, decode
from moorage.errors import ConfigError, Fault

_WHOLE = re.compile(r"(-?[0-9]{1,30})(?:\.0*)?")
_FLOAT_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_BAD = object()


def parse_json(
    source: str | bytes | Mapping[str, Any], *, file: str = "", model: str = "", variables: Mapping[str, str] | None = None
) -> ParsedConfig:
    """Read a configuration from JSON text, or from an object that was read from it.

    Field names may be those of the protocol or their camelCase forms. Taken as Triton takes them: one value where a list
    is wanted, enum names in any case or as numbers, integers as strings or as floats without a fraction. `null` is an
    unset field. `variables` are the values of template variables such as `"${MAX_BATCH}"`, with or without the quotes;
    without them such a variable is a fault, except in a field that takes text.
    Raises ConfigError with every fault; of text that is not JSON, the first.
    """
    if isinstance(source, Mapping):
        text, root = "", wrap(source)
    else:
        text = decode(source, file, model) if isinstance(source, bytes) else source
        text = text.removeprefix("\ufeff")
        root = _scan(text, file, model)
    reader = _Reader(variables)
    config = reader.message(model_config_spec(), root, "")
    positions = Positions(text, reader.offsets)
    if reader.faults:
        raise ConfigError(_placed(reader, positions, file), model)
    given = frozenset(path for path in reader.offsets_given if "[" not in path and "." not in path)
    return ParsedConfig(config, file, positions, given)


def _scan(text: str, file: str, model: str) -> Node:
    try:
        return scan(text)
    except JsonSyntaxError as error:
        line, column = Positions(text, {}).at(error.offset)
        raise ConfigError([Fault(str(error), file, line, column, advice=error.advice)], model) from error


def _placed(reader: _Reader, positions: Positions, file: str) -> list[Fault]:
    faults = []
    for offset, path, message, advice in sorted(reader.faults, key=lambda one: one[0]):
        line, column = positions.at(offset) if offset >= 0 else (0, 0)
        faults.append(Fault(message, file, line, column, path, advice))
    return faults


class _Reader:
    def __init__(self, variables: Mapping[str, str] | None) -> None:
        self._variables = variables
        self.faults: list[tuple[int, str, str, str]] = []
        self.offsets: dict[str, int] = {}
        self.offsets_given: set[str] = set()

    def _fault(self, offset: int, path: str, message: str, advice: str = "") -> Any:
        self.faults.append((offset, path, message, advice))
        return _BAD

    def _place(self, path: str, offset: int) -> None:
        self.offsets_given.add(path)
        if offset >= 0:
            self.offsets.setdefault(path, offset)

    def message(self, table: MessageSpec, node: Node, path: str) -> Any:
        """The message that an object stands for. `path` ends with a dot, or is empty for the whole configuration."""
        if isinstance(node.value, Variable):
            return self._fault(node.offset, path.removesuffix("."), *block_fault(node.value))
        if not isinstance(node.value, tuple):
            return self._fault(node.offset, path.removesuffix("."), "a JSON object is wanted here", "write { ... }")
        values: dict[str, Any] = {}
        seen: dict[str, str] = {}
        for member in node.value:
            spec = table.by_json_name.get(member.key)
            if spec is None:
                self._unknown(table, member, path)
            elif member.node.value is not None:
                self._member(spec, member, path + spec.name, values, seen)
        return table.make(**values)

    def _unknown(self, table: MessageSpec, member: Member, path: str) -> None:
        meant = nearest_field(member.key, table.by_name)
        advice = f'write "{meant}"' if meant else f"the fields here are {', '.join(table.by_name)}"
        self._fault(member.offset, path + member.key, f'there is no field "{member.key}"', advice)

    def _member(self, spec: FieldSpec, member: Member, path: str, values: dict[str, Any], seen: dict[str, str]) -> None:
        self._place(path, member.offset)
        if spec.attribute in seen:
            other = seen[spec.attribute]
            message = f'"{member.key}" and "{other}" exclude each other' if spec.oneof else f'"{spec.name}" is given twice'
            self._fault(member.offset, path, message, "keep one of them")
        seen[spec.attribute] = member.key
        value = _SHAPES[spec.shape](self, spec, member.node, path)
        if value is not _BAD:
            spec.store(values, value)

    def _one(self, spec: FieldSpec, node: Node, path: str) -> Any:
        if spec.message is not None:
            return self.message(spec.message, node, f"{path}.")
        try:
            return self._scalar(spec, node.value)
        except WrongValueError as wrong:
            return self._fault(node.offset, path, str(wrong), wrong.advice)

    def _scalar(self, spec: FieldSpec, value: Any) -> Any:
        if isinstance(value, str):
            name = value if isinstance(value, Variable) else whole_variable(value) if spec.kind is not Kind.STRING else None
            if name is not None:
                return fill_value(spec, name, self._variables)
            value = fill_text(value, self._variables) if self._variables is not None else value
        return _SCALARS[spec.kind](spec, value)

    def _list(self, spec: FieldSpec, node: Node, path: str) -> Any:
        items = node.value if isinstance(node.value, list) else [node]
        values = []
        for index, item in enumerate(items):
            where = item_path(path, index)
            self._place(where, item.offset)
            values.append(self._one(spec, item, where))
        return tuple(value for value in values if value is not _BAD)

    def _map(self, spec: FieldSpec, node: Node, path: str) -> Any:
        if isinstance(node.value, Variable):
            return self._fault(node.offset, path, *block_fault(node.value))
        if not isinstance(node.value, tuple) or spec.message is None:
            return self._fault(node.offset, path, f'"{spec.name}" takes a JSON object', 'write { "key": value }')
        key_spec, value_spec = spec.message.fields
        values = {}
        for member in node.value:
            try:
                key = _SCALARS[key_spec.kind](key_spec, member.key)
            except WrongValueError as wrong:
                self._fault(member.offset, path, f'the key "{member.key}" does not fit: {wrong}', wrong.advice)
                continue
            where = item_path(path, key)
            self._place(where, member.offset)
            if key in values:
                self._fault(member.offset, where, f'the key "{member.key}" is given twice', "keep one of them")
            values[key] = self._one(value_spec, member.node, where)
        return values


_SHAPES: dict[Shape, Callable[[_Reader, FieldSpec, Node, str], Any]] = {
    Shape.SINGLE: _Reader._one,
    Shape.LIST: _Reader._list,
    Shape.MAP: _Reader._map,
}


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f'"{value}"' if isinstance(value, str) else str(value)


def _string(_spec: FieldSpec, value: Any) -> str:
    if isinstance(value, str):
        return value
    scalar = isinstance(value, int | float)
    raise WrongValueError(f"{_shown(value)} is not a string", f'write "{_shown(value)}"' if scalar else "write a string")


def _bool(_spec: FieldSpec, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise WrongValueError(f"{_shown(value)} is neither true nor false", "write true or false")


def _integer(spec: FieldSpec, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return check_range(spec, value)
    if isinstance(value, float) and value.is_integer():
        return check_range(spec, int(value))
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)) is not None:
        return check_range(spec, int(match[1]))
    raise WrongValueError(f"{_shown(value)} is not a whole number", f"write a whole number from {spec.low} to {spec.high}")


def _float(spec: FieldSpec, value: Any) -> float:
    number = _as_float(value)
    if number is None:
        raise WrongValueError(f"{_shown(value)} is not a number", "write a number such as 0.5")
    return single(number) if spec.single_precision else number


def _as_float(value: Any) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return math.copysign(math.inf, value) if abs(value) > sys.float_info.max else float(value)
    if not isinstance(value, str):
        return None
    if value in _FLOAT_WORDS:
        return _FLOAT_WORDS[value]
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _enum(spec: FieldSpec, value: Any) -> Any:
    table = spec.enum
    if table is None:
        raise TypeError(spec.name)
    if isinstance(value, str):
        name = value.upper().replace("-", "_")
        if name in table.by_name:
            return table.by_name[name]
        value = int(value) if value.isascii() and value.isdigit() and len(value) < 10 else value
    if isinstance(value, int | float) and not isinstance(value, bool) and value in table.by_number:
        return table.by_number[int(value)]
    raise WrongValueError(f"{_shown(value)} is not a value of {spec.name}", enum_advice(str(value), list(table.by_name)))


_SCALARS: dict[Kind, Callable[[FieldSpec, Any], Any]] = {
    Kind.STRING: _string,
    Kind.BOOL: _bool,
    Kind.INT: _integer,
    Kind.FLOAT: _float,
    Kind.ENUM: _enum,
}
