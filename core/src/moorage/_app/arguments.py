"""Options given as keyword arguments instead of flags."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from moorage._app.flags import Flag
from moorage._app.options import ServerOptions
from moorage.errors import InvalidArgument


def options_with(options: ServerOptions, given: Mapping[str, Any]) -> ServerOptions:
    """The options, changed by keyword arguments. Paths are taken for text, one value for a list of one.

    Raises InvalidArgument naming the option that does not exist or has a wrong value.
    """
    known = {attribute.name: attribute for attribute in attrs.fields(ServerOptions)}
    for name in given.keys() - known.keys():
        close = difflib.get_close_matches(name, known, 1)
        advice = f"; did you mean '{close[0]}'?" if close else "; the options are the flags of 'moorage serve', with _ for -"
        raise InvalidArgument(f"there is no option '{name}'{advice}")
    return attrs.evolve(options, **{name: _value(known[name], value) for name, value in given.items()})


def _value(attribute: attrs.Attribute[Any], value: object) -> Any:
    flag = Flag.of(attribute)
    if flag.multiple:
        return _several(attribute.name, value)
    if flag.inert:
        return str(value)
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    kind = type(attribute.default)
    if kind is float and type(text) is int:
        text = float(text)
    if type(text) is not kind:
        raise InvalidArgument(f"option '{attribute.name}' is {value!r}, it must be of type {kind.__name__}")
    if flag.choices and text not in flag.choices:
        raise InvalidArgument(f"option '{attribute.name}' is {value!r}, it may be one of {', '.join(flag.choices)}")
    return text


def _several(name: str, value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(values, Iterable):
        raise InvalidArgument(f"option '{name}' is {value!r}, it must be text or a list of texts")
    texts = tuple(os.fspath(one) if isinstance(one, os.PathLike) else one for one in values)
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgument(f"option '{name}' is {value!r}, it must be text or a list of texts")
    return texts
