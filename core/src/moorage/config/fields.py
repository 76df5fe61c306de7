"""Tables, made once, that tie the schema's classes to the protobuf descriptors; parsers, printers, converters use them."""

from __future__ import annotations

import enum
import typing
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple

import attrs
from attrs import field, frozen
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from moorage.config.proto import descriptor
from moorage.config.schema import ONEOF, ModelConfig


class Kind(enum.Enum):
    """What one value of a field is."""

    MESSAGE = "message"
    STRING = "text"
    BOOL = "boolean"
    INT = "whole number"
    FLOAT = "number"
    ENUM = "name"


class Shape(enum.Enum):
    """How many values a field has."""

    SINGLE = "single"
    LIST = "list"
    MAP = "map"


class MapEntry(NamedTuple):
    """One entry of a map field, as the text format writes it."""

    key: Any
    value: Any


@frozen(eq=False)
class EnumSpec:
    """An enum's members by their names in configurations, and by number."""

    name: str
    by_name: Mapping[str, enum.Enum]
    by_number: Mapping[int, enum.Enum]
    names: Mapping[enum.Enum, str]


@frozen(eq=False)
class FieldSpec:
    """One field of a message: its names, its type, and where its value is kept."""

    name: str
    json_name: str
    attribute: str
    kind: Kind
    shape: Shape
    default: Any
    """The value of the attribute (of a map entry's part) when the field is not set."""
    presence: bool
    """Whether unset differs from the default: messages and members of a oneof."""
    message: MessageSpec | None = None
    enum: EnumSpec | None = None
    low: int = 0
    high: int = 0
    single_precision: bool = False
    oneof: str = ""
    """Name of the oneof that the field belongs to."""
    member: type | None = None
    """The class that the attribute holds when this member of its oneof is set."""
    box: str = ""
    """The attribute of `member` that holds the scalar, for scalars kept in a class of their own."""

    @property
    def map_key(self) -> FieldSpec:
        """The key of a map field's entries."""
        return self._part("key")

    @property
    def map_value(self) -> FieldSpec:
        """The value of a map field's entries."""
        return self._part("value")

    def _part(self, name: str) -> FieldSpec:
        if self.message is None:
            raise TypeError(f"{self.name} is not a map")
        return self.message.by_name[name]

    def read(self, owner: Any) -> Any:
        """The value of this field in an object of the schema, or None when it is not set."""
        value = getattr(owner, self.attribute)
        if self.member is None:
            return value
        if type(value) is not self.member:
            return None
        return getattr(value, self.box) if self.box else value

    def store(self, values: dict[str, Any], value: Any) -> None:
        """Set this field among the keyword arguments of its message."""
        if self.box and self.member is not None:
            value = self.member(**{self.box: value})
        values[self.attribute] = value


@frozen(eq=False)
class MessageSpec:
    """A message: how to make its object, and its fields in the order of the .proto file."""

    name: str
    make: Callable[..., Any]
    fields: tuple[FieldSpec, ...]
    entry: bool = False
    """Whether this is an entry of a map, which has the fields `key` and `value`."""
    by_name: Mapping[str, FieldSpec] = field(init=False)
    by_json_name: Mapping[str, FieldSpec] = field(init=False)
    """Fields by either of the names that JSON may use."""

    @by_name.default
    def _by_name(self) -> Mapping[str, FieldSpec]:
        return {spec.name: spec for spec in self.fields}

    @by_json_name.default
    def _by_json_name(self) -> Mapping[str, FieldSpec]:
        return {spec.json_name: spec for spec in self.fields} | {spec.name: spec for spec in self.fields}


_FD = FieldDescriptor
_KINDS = {
    _FD.CPPTYPE_MESSAGE: Kind.MESSAGE,
    _FD.CPPTYPE_STRING: Kind.STRING,
    _FD.CPPTYPE_BOOL: Kind.BOOL,
    _FD.CPPTYPE_ENUM: Kind.ENUM,
    _FD.CPPTYPE_INT32: Kind.INT,
    _FD.CPPTYPE_INT64: Kind.INT,
    _FD.CPPTYPE_UINT32: Kind.INT,
    _FD.CPPTYPE_UINT64: Kind.INT,
    _FD.CPPTYPE_FLOAT: Kind.FLOAT,
    _FD.CPPTYPE_DOUBLE: Kind.FLOAT,
}
_RANGES = {
    _FD.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    _FD.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    _FD.CPPTYPE_UINT32: (0, 2**32 - 1),
    _FD.CPPTYPE_UINT64: (0, 2**64 - 1),
}
_EMPTY: Mapping[Kind, Any] = {Kind.STRING: "", Kind.BOOL: False, Kind.INT: 0, Kind.FLOAT: 0.0}


@cache
def model_config_spec() -> MessageSpec:
    """The table of `ModelConfig`, and through it of every message below."""
    return _message_spec(descriptor("ModelConfig"), ModelConfig)


@cache
def _message_spec(message: Descriptor, cls: type) -> MessageSpec:
    hints = typing.get_type_hints(cls)
    own: dict[str, str] = {}
    members: dict[str, tuple[str, type]] = {}
    for attribute in attrs.fields(cls):
        choices = attribute.metadata.get(ONEOF)
        if choices is None:
            own[attribute.metadata.get("proto", attribute.name)] = attribute.name
        else:
            members |= {name: (attribute.name, member) for name, member in choices.items()}
    fields = []
    for one in message.fields:
        if one.name in members:
            attribute_name, member = members[one.name]
            fields.append(_member_spec(one, attribute_name, member))
        else:
            fields.append(_field_spec(one, own[one.name], _element_type(hints[own[one.name]])))
    return MessageSpec(message.name, cls, tuple(fields))


def _element_type(hint: Any) -> Any:
    """The class of one value, out of `X`, `X | None`, `tuple[X, ...]` or `Mapping[K, X]`."""
    arguments = typing.get_args(hint)
    if not arguments:
        return hint
    origin = typing.get_origin(hint)
    if origin in (UnionType, typing.Union):
        return next(one for one in arguments if one is not NoneType)
    return arguments[0] if origin is tuple else arguments[1]


def _member_spec(one: FieldDescriptor, attribute: str, member: type) -> FieldSpec:
    """A member of a oneof. A scalar whose member class is a schema class lives in that class's only attribute."""
    boxed = one.message_type is None and attrs.has(member)
    made = _field_spec(one, attribute, member)
    return attrs.evolve(made, member=member, box=attrs.fields(member)[0].name if boxed else "", default=None)


def _field_spec(one: FieldDescriptor, attribute: str, element: Any) -> FieldSpec:
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        return _map_spec(one, one.message_type, attribute, element)
    kind = _KINDS[one.cpp_type]
    low, high = _RANGES.get(one.cpp_type, (0, 0))
    spec = FieldSpec(
        name=one.name,
        json_name=one.json_name,
        attribute=attribute,
        kind=kind,
        shape=Shape.LIST if one.is_repeated else Shape.SINGLE,
        default=() if one.is_repeated else _EMPTY.get(kind),
        presence=one.has_presence,
        message=_message_spec(one.message_type, element) if one.message_type is not None else None,
        enum=_enum_spec(one.enum_type, element) if one.enum_type is not None else None,
        low=low,
        high=high,
        single_precision=one.cpp_type == _FD.CPPTYPE_FLOAT,
        oneof=one.containing_oneof.name if one.containing_oneof is not None else "",
    )
    if spec.enum is not None and spec.shape is Shape.SINGLE:
        return attrs.evolve(spec, default=spec.enum.by_number[0])
    return spec


def _map_spec(one: FieldDescriptor, entry: Descriptor, attribute: str, element: Any) -> FieldSpec:
    key = _field_spec(entry.fields_by_name["key"], "key", str)
    value = _field_spec(entry.fields_by_name["value"], "value", element)
    if value.message is not None:
        value = attrs.evolve(value, default=value.message.make())
    message = MessageSpec(one.name, _entry_maker(key.default, value.default), (key, value), entry=True)
    return FieldSpec(one.name, one.json_name, attribute, Kind.MESSAGE, Shape.MAP, default={}, presence=False, message=message)


def _entry_maker(default_key: Any, default_value: Any) -> Callable[..., MapEntry]:
    def make(key: Any = default_key, value: Any = default_value) -> MapEntry:
        return MapEntry(key, value)

    return make


@cache
def _enum_spec(enumeration: EnumDescriptor, cls: type[enum.Enum]) -> EnumSpec:
    numbers = {member.value: member for member in cls}
    by_name = {value.name: numbers[value.number] for value in enumeration.values}
    return EnumSpec(enumeration.full_name, by_name, numbers, {member: name for name, member in by_name.items()})
