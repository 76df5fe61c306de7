"""Words of the protobuf text format."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from moorage.config.parsed import Position
from moorage.errors import ConfigError, Fault

WORD, NUMBER, STRING, TEMPLATE, OPEN_STRING, SYMBOL, END = range(1, 8)
"""Kinds of tokens. TEMPLATE is `${NAME}`, and `$NAME` and `{{ NAME }}`, which are never filled in. OPEN_STRING is text whose
closing quote is missing; END stands behind the last token.
"""

_TOKEN = re.compile(
    r"""
    (?:\s++|\#[^\n]*+)*+
    (?:
        ([A-Za-z_][0-9A-Za-z_+-]*+)
      | ((?:[0-9+-]|\.[0-9])[0-9A-Za-z_.+-]*+)
      | ("(?:[^"\n\\]|\\.)*+"|'(?:[^'\n\\]|\\.)*+')
      | (\$\{[^{}\n"']*+\} | \$[A-Za-z_][0-9A-Za-z_]*+ | \{\{[^{}\n"']*+\}\})
      | (["'](?:[^\n\\]|\\.)*+\\?)
      | (.)
      | (\Z)
    )
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)
_SIMPLE = {
    "a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v",
    "\\": b"\\", "'": b"'", '"': b'"', "?": b"?",
}  # fmt: skip


class Tokens:
    """All tokens of a text, as three lists of the same length (made in one go: faster than objects)."""

    def __init__(self, text: str) -> None:
        self.kinds: list[int] = []
        self.texts: list[str] = []
        self.starts: list[int] = []
        kinds, texts, starts = self.kinds.append, self.texts.append, self.starts.append
        for match in _TOKEN.finditer(text):
            kind = match.lastindex or END
            kinds(kind)
            texts(match[kind])
            starts(match.start(kind))
            if kind == END:
                break


class Positions(Mapping[str, Position]):
    """Where fields stand: offsets into the text, turned into lines and columns only when somebody asks."""

    def __init__(self, text: str, offsets: Mapping[str, int]) -> None:
        self._text = text
        self._offsets = offsets

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self._text))]

    def at(self, offset: int) -> Position:
        """The line and column of an offset into the text."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def __getitem__(self, path: str) -> Position:
        return self.at(self._offsets[path])

    def __contains__(self, path: object) -> bool:
        return path in self._offsets

    def __iter__(self) -> Iterator[str]:
        return iter(self._offsets)

    def __len__(self) -> int:
        return len(self._offsets)


def unquote(literals: Sequence[str]) -> str:
    """The text of adjacent literals, quotes off and escapes resolved.

    Raises ValueError for an escape that does not exist and for bytes that are not UTF-8.
    """
    if len(literals) == 1 and "\\" not in literals[0] and literals[0].isascii():
        return literals[0][1:-1]
    return b"".join(_unescape(literal[1:-1]) for literal in literals).decode("utf-8")


def _unescape(body: str) -> bytes:
    parts: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[at : match.start()].encode())
        parts.append(_escape(match))
        at = match.end()
    parts.append(body[at:].encode())
    return b"".join(parts)


def _escape(match: re.Match[str]) -> bytes:
    octal, hexadecimal, short, long, simple = match.groups()
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        code = int(short or long, 16)
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"{match[0]} is not a character")
        return chr(code).encode()
    if simple not in _SIMPLE:
        raise ValueError(f"{match[0]} is not an escape sequence")
    return _SIMPLE[simple]


def decode(raw: bytes, file: str, model: str) -> str:
    """The text of a configuration file, which must be UTF-8. Raises ConfigError with the place of the byte that is not."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - before.rfind(b"\n")
        fault = Fault(f"byte {raw[error.start]:#04x} is not UTF-8", file, line, column, advice="save the file as UTF-8")
        raise ConfigError([fault], model) from error
