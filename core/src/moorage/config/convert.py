"""Configurations as protobuf messages, and back."""

from __future__ import annotations

from typing import Any, cast

from google.protobuf.message import Message

from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape, model_config_spec
from moorage.config.proto import message_class
from moorage.config.scalars import single
from moorage.config.schema import ModelConfig
from moorage.errors import ConfigError, Fault


def to_proto(config: ModelConfig) -> Message:
    """The configuration as an `inference.ModelConfig` message of the private pool."""
    message = message_class("ModelConfig")()
    _fill(message, model_config_spec(), config)
    return message


def from_proto(message: Message) -> ModelConfig:
    """The configuration that an `inference.ModelConfig` message holds (of any pool).

    Raises ConfigError when the message has an enum number that is unknown here.
    """
    return cast("ModelConfig", _read(message, model_config_spec(), ""))


def _fill(message: Message, table: MessageSpec, owner: Any) -> None:
    for spec in table.fields:
        value = spec.read(owner)
        if value is not None:
            _FILLERS[spec.shape](message, spec, value)


def _fill_single(message: Message, spec: FieldSpec, value: Any) -> None:
    if spec.message is None:
        setattr(message, spec.name, _plain(spec, value))
        return
    part = getattr(message, spec.name)
    part.SetInParent()
    _fill(part, spec.message, value)


def _fill_list(message: Message, spec: FieldSpec, values: Any) -> None:
    target = getattr(message, spec.name)
    if spec.message is None:
        target.extend([_plain(spec, value) for value in values])
        return
    for value in values:
        _fill(target.add(), spec.message, value)


def _fill_map(message: Message, spec: FieldSpec, values: Any) -> None:
    target = getattr(message, spec.name)
    value_spec = spec.map_value
    for key, value in values.items():
        if value_spec.message is None:
            target[key] = value
        else:
            _fill(target[key], value_spec.message, value)


_FILLERS = {Shape.SINGLE: _fill_single, Shape.LIST: _fill_list, Shape.MAP: _fill_map}


def _plain(spec: FieldSpec, value: Any) -> Any:
    return value.value if spec.kind is Kind.ENUM else value


def _read(message: Message, table: MessageSpec, path: str) -> Any:
    values: dict[str, Any] = {}
    for spec in table.fields:
        if spec.presence and not message.HasField(spec.name):
            continue
        raw = getattr(message, spec.name)
        spec.store(values, _READERS[spec.shape](raw, spec, f"{path}{spec.name}"))
    return table.make(**values)


def _read_one(raw: Any, spec: FieldSpec, path: str) -> Any:
    if spec.message is not None:
        return _read(raw, spec.message, f"{path}.")
    if spec.enum is not None:
        return _enum_member(spec, raw, path)
    return single(raw) if spec.single_precision else raw


def _enum_member(spec: FieldSpec, number: int, path: str) -> Any:
    members = spec.enum.by_number if spec.enum is not None else {}
    if number not in members:
        raise ConfigError([Fault(f"{number} is not a value of {path}", field=path)])
    return members[number]


def _read_list(raw: Any, spec: FieldSpec, path: str) -> Any:
    return tuple(_read_one(one, spec, f"{path}[{index}]") for index, one in enumerate(raw))


def _read_map(raw: Any, spec: FieldSpec, path: str) -> Any:
    value_spec = spec.map_value
    return {key: _read_one(raw[key], value_spec, f"{path}[{key}]") for key in raw}


_READERS = {Shape.SINGLE: _read_one, Shape.LIST: _read_list, Shape.MAP: _read_map}
