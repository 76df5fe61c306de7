"""Configurations as JSON objects and as protobuf text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.schema import ModelConfig

_UNSAFE = re.compile(r'[\x00-\x1f\x7f"\\]')


def to_json(config: ModelConfig) -> dict[str, Any]:
    """The configuration as Triton shows it in JSON.

    Field names are those of the protocol, in its order; every default is there, 64-bit integers are numbers, the keys
    of maps are strings. Messages and members of a oneof that are not set are left out. Infinities and NaN are the strings
    that protobuf's JSON has for them, so that the result is always valid JSON.
    """
    return _object(model_config_spec(), config)


def _object(table: MessageSpec, owner: Any) -> dict[str, Any]:
    shown = {}
    for spec in table.fields:
        value = spec.read(owner)
        if value is not None:
            shown[spec.name] = _json_value(spec, value)
    return shown


def _json_value(spec: FieldSpec, value: Any) -> Any:
    if spec.shape is Shape.LIST:
        return [_json_one(spec, one) for one in value]
    if spec.shape is Shape.MAP:
        return {str(key): _json_one(spec.map_value, one) for key, one in value.items()}
    return _json_one(spec, value)


def _json_one(spec: FieldSpec, value: Any) -> Any:
    if spec.message is not None:
        return _object(spec.message, value)
    if spec.enum is not None:
        return spec.enum.names[value]
    if spec.kind is Kind.FLOAT and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def to_text(config: ModelConfig) -> str:
    """The configuration as a `config.pbtxt`; what is at its default is left out. Reading it gives an equal configuration."""
    return "".join(f"{line}\n" for line in _lines(model_config_spec(), config, ""))


def _lines(table: MessageSpec, owner: Any, indent: str) -> Iterator[str]:
    for spec in table.fields:
        value = spec.read(owner)
        if value is not None and (spec.presence or value != spec.default):
            yield from _FIELD_LINES[spec.shape](spec, value, indent)


def _single_lines(spec: FieldSpec, value: Any, indent: str) -> Iterator[str]:
    if spec.message is None:
        yield f"{indent}{spec.name}: {_literal(spec, value)}"
    else:
        yield from _block(spec.name, spec.message, value, indent)


def _list_lines(spec: FieldSpec, values: Any, indent: str) -> Iterator[str]:
    if spec.message is None:
        yield f"{indent}{spec.name}: [{', '.join(_literal(spec, value) for value in values)}]"
        return
    for value in values:
        yield from _block(spec.name, spec.message, value, indent)


def _map_lines(spec: FieldSpec, values: Mapping[Any, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        yield f"{indent}{spec.name} {{"
        yield f"{indent}  key: {_literal(spec.map_key, key)}"
        yield from _single_lines(spec.map_value, value, f"{indent}  ")
        yield f"{indent}}}"


_FIELD_LINES = {Shape.SINGLE: _single_lines, Shape.LIST: _list_lines, Shape.MAP: _map_lines}


def _block(name: str, table: MessageSpec, value: Any, indent: str) -> Iterator[str]:
    yield f"{indent}{name} {{"
    yield from _lines(table, value, f"{indent}  ")
    yield f"{indent}}}"


def _literal(spec: FieldSpec, value: Any) -> str:
    if spec.enum is not None:
        return spec.enum.names[value]
    if spec.kind is Kind.STRING:
        return f'"{_UNSAFE.sub(_escape, value)}"'
    if spec.kind is Kind.BOOL:
        return "true" if value else "false"
    return repr(value)


def _escape(match: re.Match[str]) -> str:
    one = match[0]
    return f"\\{one}" if one in ('"', "\\") else f"\\{ord(one):03o}"
