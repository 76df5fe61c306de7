"""JSON values that know where in the text they stand (the standard library's parser does not tell)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.config.scalars import LONGEST_INTEGER

_SPACE = re.compile(r"[ \t\r\n]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"')
_VARIABLE = re.compile(r"\$\{[ \t]*([^{}\n\"']*?)[ \t]*\}")
_WORDS = {
    "null": None, "true": True, "false": False,
    "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_WORD = re.compile("|".join(sorted(_WORDS, reverse=True)))
_DEEPEST = 64


class Node(NamedTuple):
    """A value and the offset of its first character.

    `value` is a tuple of `Member` for an object, a list of nodes for an array, else the scalar itself.
    """

    value: Any
    offset: int


class Member(NamedTuple):
    """A key of an object, where it stands, and its value."""

    key: str
    offset: int
    node: Node


class Variable(str):
    """The name of a template variable, as the value that stands where `${NAME}` does, without quotes."""

    __slots__ = ()


class JsonSyntaxError(Exception):
    """The text is not JSON from `offset` on."""

    def __init__(self, message: str, offset: int, advice: str = "") -> None:
        super().__init__(message)
        self.offset = offset
        self.advice = advice


def scan(text: str) -> Node:
    """The JSON value that the whole text is. Raises JsonSyntaxError."""
    node, at = _value(text, _skip(text, 0), 0)
    if at != len(text):
        raise JsonSyntaxError("something follows the end of the JSON value", at, "remove it")
    return node


def wrap(value: Any) -> Node:
    """Plain Python values as nodes without places."""
    if isinstance(value, Mapping):
        return Node(tuple(Member(str(key), -1, wrap(one)) for key, one in value.items()), -1)
    if isinstance(value, list | tuple):
        return Node([wrap(one) for one in value], -1)
    return Node(value, -1)


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _value(text: str, at: int, depth: int) -> tuple[Node, int]:
    """The value that begins at `at`, and where the next token begins."""
    first = text[at : at + 1]
    if depth > _DEEPEST:
        raise JsonSyntaxError("the values are nested too deeply", at)
    if first == "{":
        return _object(text, at, depth)
    if first == "[":
        return _array(text, at, depth)
    if first == '"':
        string, end = _string(text, at)
        return Node(string, at), _skip(text, end)
    if (match := _NUMBER.match(text, at)) is not None:
        return Node(_number(match), at), _skip(text, match.end())
    if (match := _WORD.match(text, at)) is not None:
        return Node(_WORDS[match[0]], at), _skip(text, match.end())
    if (match := _VARIABLE.match(text, at)) is not None:
        return Node(Variable(match[1]), at), _skip(text, match.end())
    raise JsonSyntaxError("a JSON value is wanted here" if first else "the JSON text ends too early", at)


def _number(match: re.Match[str]) -> int | float:
    whole = match[1] is None and match[2] is None and len(match[0]) <= LONGEST_INTEGER
    return int(match[0]) if whole else float(match[0])


def _string(text: str, at: int) -> tuple[str, int]:
    match = _STRING.match(text, at)
    if match is None:
        raise JsonSyntaxError(
            "the string is not closed, or holds a line break", at, 'write " at its end, and \\n for a line break'
        )
    try:
        return str(json.loads(match[0])), match.end()
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(f"the string is not valid JSON: {error.msg}", at) from error


def _object(text: str, at: int, depth: int) -> tuple[Node, int]:
    members: list[Member] = []
    place = _skip(text, at + 1)
    if text[place : place + 1] == "}":
        return Node((), at), _skip(text, place + 1)
    while True:
        if text[place : place + 1] != '"':
            raise JsonSyntaxError("a key in double quotes is wanted here", place, 'write "key": value, and no comma at the end')
        key, end = _string(text, place)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise JsonSyntaxError(f'there is no colon after "{key}"', colon, f'write "{key}": and the value')
        node, after = _value(text, _skip(text, colon + 1), depth + 1)
        members.append(Member(key, place, node))
        place, more = _next(text, after, "}")
        if not more:
            return Node(tuple(members), at), place


def _array(text: str, at: int, depth: int) -> tuple[Node, int]:
    items: list[Node] = []
    place = _skip(text, at + 1)
    if text[place : place + 1] == "]":
        return Node(items, at), _skip(text, place + 1)
    while True:
        node, after = _value(text, place, depth + 1)
        items.append(node)
        place, more = _next(text, after, "]")
        if not more:
            return Node(items, at), place


def _next(text: str, at: int, close: str) -> tuple[int, bool]:
    """Where to go on after an item, and whether another one follows."""
    mark = text[at : at + 1]
    if mark == ",":
        return _skip(text, at + 1), True
    if mark == close:
        return _skip(text, at + 1), False
    raise JsonSyntaxError(f"a comma or '{close}' is wanted here", at, f"write , or {close}")
