"""Recursive-descent reading of the protobuf text format: goes on after a fault, so that one look finds them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.config.fields import FieldSpec, Kind, MessageSpec, Shape
from moorage.config.parsed import item_path
from moorage.config.scalars import WrongValueError, parse_bare, parse_integer, refuse_quoted
from moorage.config.suggest import nearest_field
from moorage.config.templates import block_fault, fill_text, fill_value, variable_name
from moorage.config.tokens import END, NUMBER, OPEN_STRING, STRING, TEMPLATE, WORD, Tokens, unquote

MOST_FAULTS = 100
"""After so many faults the rest of the text is left unread."""

_BAD = object()
_CLOSES = {"{": "}", "<": ">", "[": "]"}
_VALUE_ENDS = frozenset(("}", ">", "]", ",", ";", ""))


class TooManyFaultsError(Exception):
    """The text is no configuration at all; reading on would say nothing more."""


class Reader:
    """Reads the tokens of one text into objects of the schema.

    `faults` holds (offset, path, message, advice) of all that is wrong, `offsets` where each field stands.
    """

    def __init__(self, text: str, variables: Mapping[str, str] | None) -> None:
        tokens = Tokens(text)
        self._kinds, self._texts, self._starts = tokens.kinds, tokens.texts, tokens.starts
        self._variables = variables
        self._at = 0
        self._lists = 0
        self.offsets: dict[str, int] = {}
        self.faults: list[tuple[int, str, str, str]] = []

    def read(self, table: MessageSpec) -> Any:
        """The whole text as one message. The result means something only when there are no `faults`."""
        try:
            return self._fields(table, "", "", 0)
        except TooManyFaultsError:
            return None

    def _fault(self, at: int, path: str, message: str, advice: str = "") -> Any:
        self.faults.append((self._starts[at], path.removesuffix("."), message, advice))
        if len(self.faults) >= MOST_FAULTS:
            raise TooManyFaultsError
        return _BAD

    # Messages

    def _fields(self, table: MessageSpec, path: str, close: str, opened: int) -> Any:
        """The fields up to `close` ("" is the end of the text); `opened` is the token of the opening brace."""
        values: dict[str, Any] = {}
        members: dict[str, str] = {}
        texts, kinds = self._texts, self._kinds
        while True:
            kind = kinds[self._at]
            if kind in (WORD, NUMBER):
                self._field(table, values, members, path)
            elif texts[self._at] == close:
                self._at += kind != END
                break
            elif kind == END or (texts[self._at] == "]" and self._lists):
                self._fault(opened, path, f"'{texts[opened]}' is never closed", f"write '{close}' where this ends")
                break
            else:
                self._stray(path)
        for name, value in values.items():
            if type(value) is list:
                values[name] = tuple(value)
        return table.make(**values)

    def _field(self, table: MessageSpec, values: dict[str, Any], members: dict[str, str], path: str) -> None:
        at = self._at
        name = self._texts[at]
        self._at = at + 1
        spec = table.by_name.get(name)
        if spec is None:
            self._unknown(table, at, path)
        else:
            where = path[:-1] if table.entry else path + name
            self.offsets.setdefault(where, self._starts[at])
            if spec.shape is Shape.SINGLE:
                self._single(spec, values, members, where)
            elif spec.shape is Shape.LIST:
                self._repeated(spec, values.setdefault(spec.attribute, []), where)
            else:
                self._map(spec, values.setdefault(spec.attribute, {}), where)
        if self._texts[self._at] in (",", ";"):
            self._at += 1

    def _single(self, spec: FieldSpec, values: dict[str, Any], members: dict[str, str], where: str) -> None:
        at = self._at - 1
        other = members.setdefault(spec.oneof, spec.name) if spec.oneof else spec.name
        if other != spec.name:
            self._fault(at, where, f"{spec.name} and {other} exclude each other", f"keep one of {other} and {spec.name}")
        elif spec.attribute in values and (spec.presence or values[spec.attribute] != spec.default):
            self._fault(at, where, f"{spec.name} is given twice", "keep one of them")
        self._colon(spec, where)
        if self._texts[self._at] == "[":
            self._fault(self._at, where, f"{spec.name} takes one value, not a list", "leave out the brackets")
            self._skip_block()
            return
        value = self._value(spec, where)
        if value is not _BAD:
            spec.store(values, value)

    def _unknown(self, table: MessageSpec, at: int, path: str) -> None:
        name = self._texts[at]
        meant = nearest_field(name, table.by_name)
        advice = f"write {meant}" if meant else f"the fields here are {', '.join(table.by_name)}"
        self._fault(at, path + name, f"there is no field {name}", advice)
        separated = self._texts[self._at] in (":", "=")
        self._at += separated
        if self._texts[self._at] in _CLOSES:
            self._skip_block()
        elif self._kinds[self._at] == STRING:
            self._literals()
        elif separated and self._kinds[self._at] in (WORD, NUMBER, TEMPLATE, OPEN_STRING):
            self._at += 1

    def _stray(self, path: str) -> None:
        at = self._at
        text = self._texts[at]
        self._at += 1
        if self._kinds[at] == TEMPLATE:
            self._fault(at, path, f"unresolved template variable {variable_name(text)}", "fill in the template")
            if self._texts[self._at] == ":":
                self._at += 1
                self._pass_by()
        elif text in _CLOSES:
            self._fault(at, path, f"a field name is wanted, not '{text}'")
            self._at = at
            self._skip_block()
        else:
            self._fault(at, path, f"a field name is wanted, not {text}", "remove it")

    # Lists and maps

    def _repeated(self, spec: FieldSpec, values: list[Any], where: str) -> None:
        self._colon(spec, where)
        if self._texts[self._at] == "[":
            self._bracketed(spec, values, where)
        else:
            self._element(spec, values, where)

    def _map(self, spec: FieldSpec, values: dict[Any, Any], where: str) -> None:
        entries: list[Any] = []
        self._repeated(spec, entries, where)
        values.update(entries)

    def _element(self, spec: FieldSpec, values: list[Any], where: str) -> None:
        index = len(values)
        path = item_path(where, self._key_ahead(index)) if spec.shape is Shape.MAP else f"{where}[{index}]"
        self.offsets[path] = self._starts[self._at]
        value = self._value(spec, path)
        if value is not _BAD:
            values.append(value)

    def _key_ahead(self, index: int) -> str | int:
        """The key of the map entry that begins here, or its place where the key does not come first."""
        at = self._at
        if self._texts[at + 1 : at + 3] != ["key", ":"]:
            return index
        text = self._texts[at + 3]
        if self._kinds[at + 3] == STRING:
            return text[1:-1]
        number = parse_integer(text)
        return index if number is None else number

    def _bracketed(self, spec: FieldSpec, values: list[Any], where: str) -> None:
        opened = self._at
        self._at += 1
        if self._texts[self._at] == "]":
            self._at += 1
            return
        self._lists += 1
        while True:
            self._element(spec, values, where)
            if self._list_ends(spec, where, opened):
                break
        self._lists -= 1

    def _list_ends(self, spec: FieldSpec, where: str, opened: int) -> bool:
        at = self._at
        text = self._texts[at]
        if text == "]":
            self._at += 1
            return True
        if text == ",":
            self._at += 1
            if self._texts[self._at] != "]":
                return False
            self._at += 1
            self._fault(at, where, "there is a comma after the last item of the list", "remove the comma")
            return True
        if self._begins_item(spec):
            self._fault(at, where, "two items of the list have no comma between them", "write a comma between the items")
            return False
        self._fault(opened, where, "'[' is never closed", "write ']' after the last item")
        return True

    def _begins_item(self, spec: FieldSpec) -> bool:
        text = self._texts[self._at]
        if spec.kind is Kind.MESSAGE:
            return text in ("{", "<")
        if self._kinds[self._at] not in (WORD, NUMBER, STRING, TEMPLATE):
            return False
        return self._texts[self._at + 1] not in (":", "{", "=", "<", "[")

    # Values

    def _colon(self, spec: FieldSpec, where: str) -> None:
        text = self._texts[self._at]
        if text == ":":
            self._at += 1
        elif text == "=":
            self._fault(self._at, where, f"'=' follows {spec.name}", f"write {spec.name}: with a colon")
            self._at += 1
        elif spec.kind is not Kind.MESSAGE:
            self._fault(self._at, where, f"there is no colon after {spec.name}", f"write {spec.name}: with a colon")

    def _value(self, spec: FieldSpec, where: str) -> Any:
        return self._message(spec, where) if spec.message is not None else self._scalar(spec, where)

    def _message(self, spec: FieldSpec, where: str) -> Any:
        opened = self._at
        text = self._texts[opened]
        if text in ("{", "<") and spec.message is not None:
            self._at += 1
            return self._fields(spec.message, f"{where}.", _CLOSES[text], opened)
        if self._kinds[opened] == TEMPLATE:
            self._fault(opened, where, *block_fault(variable_name(text)))
        else:
            self._fault(opened, where, f"{spec.name} takes fields in braces", f"write {spec.name} {{ ... }}")
        return self._pass_by()

    def _scalar(self, spec: FieldSpec, where: str) -> Any:
        at = self._at
        kind, text = self._kinds[at], self._texts[at]
        try:
            if kind in (WORD, NUMBER):
                self._at += 1
                return parse_bare(spec, text)
            if kind == STRING:
                return self._quoted(spec)
            if kind == TEMPLATE:
                self._at += 1
                return fill_value(spec, variable_name(text), self._variables if text.startswith("${") else None)
        except WrongValueError as wrong:
            return self._fault(at, where, str(wrong), wrong.advice)
        if kind == OPEN_STRING:
            self._fault(at, where, "the text is not closed on its line", f"write {text[0]} at its end")
        elif text in _VALUE_ENDS:
            self._fault(at, where, f"{spec.name} has no value", f"write a {spec.kind.value}")
        else:
            self._fault(at, where, f"a {spec.kind.value} is wanted, not '{text}'", f"write one {spec.kind.value}")
        return self._pass_by()

    def _quoted(self, spec: FieldSpec) -> str:
        literals = self._literals()
        try:
            text = unquote(literals)
        except ValueError as error:
            raise WrongValueError(f"the text has a fault: {error}", "write \\\\ for a backslash") from error
        if spec.kind is not Kind.STRING:
            raise refuse_quoted(spec, text)
        return fill_text(text, self._variables) if self._variables is not None else text

    def _literals(self) -> list[str]:
        """All the adjacent pieces of one text in quotes."""
        first = self._at
        while self._kinds[self._at] == STRING:
            self._at += 1
        return self._texts[first : self._at]

    # Going on after a fault

    def _pass_by(self) -> Any:
        """Step over what stands where a value should."""
        text = self._texts[self._at]
        if text in _CLOSES:
            self._skip_block()
        elif text not in _VALUE_ENDS:
            self._at += 1
        return _BAD

    def _skip_block(self) -> None:
        depth = 0
        while self._kinds[self._at] != END:
            text = self._texts[self._at]
            self._at += 1
            depth += (text in _CLOSES) - (text in ("}", ">", "]"))
            if depth <= 0:
                return
