"""Single values of the text format: what a literal means for a field, or why it means nothing."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from moorage.config.fields import FieldSpec, Kind
from moorage.config.suggest import nearest_value

_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fF]?")
_SPECIAL = re.compile(r"(-?)(?:(inf|infinity)|nan)f?", re.IGNORECASE)
_BOOLS = {"true": True, "t": True, "True": True, "1": True, "false": False, "f": False, "False": False, "0": False}
LONGEST_INTEGER = 30
"""Digits above which a decimal number is out of every range; longer ones are not worked out."""

_HUGE: int = 10**LONGEST_INTEGER
_LOOSE_BOOLS = {"true": "true", "yes": "true", "on": "true", "false": "false", "no": "false", "off": "false"}


class WrongValueError(Exception):
    """A value that its field cannot take; `advice` says what to write."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def single(value: float) -> float:
    """The number nearest to `value` that a 32-bit float holds, in its shortest decimal form (so that 0.1 stays 0.1)."""
    try:
        (kept,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    return float(str(np.float32(kept)))


def parse_integer(text: str) -> int | None:
    """The integer that a decimal, hexadecimal or octal literal stands for, or None."""
    if _INTEGER.fullmatch(text) is None:
        return None
    sign = -1 if text[0] == "-" else 1
    digits = text.removeprefix("-")
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 0)
    if digits[0] == "0":
        return sign * int(digits, 8)
    if len(digits) > LONGEST_INTEGER:
        return sign * _HUGE
    return sign * int(digits)


def check_range(spec: FieldSpec, number: int) -> int:
    """The number itself if the field can hold it; raises WrongValueError."""
    if spec.low <= number <= spec.high:
        return number
    raise WrongValueError(f"{number} is out of range", f"write a whole number from {spec.low} to {spec.high}")


def _integer(spec: FieldSpec, text: str) -> int:
    number = parse_integer(text)
    if number is not None:
        return check_range(spec, number)
    whole = text.partition(".")[0]
    looks_whole = re.fullmatch(r"-?[0-9]+\.0*", text) is not None
    raise WrongValueError(f"{text} is not a whole number", f"write {whole}" if looks_whole else "write a whole number")


def _float(spec: FieldSpec, text: str) -> float:
    if _FLOAT.fullmatch(text) is not None:
        number = float(text.rstrip("fF"))
    elif (special := _SPECIAL.fullmatch(text)) is not None:
        number = float(special[1] + ("inf" if special[2] else "nan"))
    else:
        raise WrongValueError(f"{text} is not a number", "write a number such as 0.5")
    return single(number) if spec.single_precision else number


def _bool(_spec: FieldSpec, text: str) -> bool:
    if text in _BOOLS:
        return _BOOLS[text]
    raise WrongValueError(f"{text} is neither true nor false", f"write {_LOOSE_BOOLS.get(text.lower(), 'true or false')}")


def _enum(spec: FieldSpec, text: str) -> Any:
    table = spec.enum
    if table is None:
        raise TypeError(spec.name)
    if text in table.by_name:
        return table.by_name[text]
    number = parse_integer(text)
    if number is not None and number in table.by_number:
        return table.by_number[number]
    raise WrongValueError(f"{text} is not a value of {spec.name}", enum_advice(text, list(table.by_name)))


def enum_advice(text: str, names: list[str]) -> str:
    """What to write instead of an enum value that does not exist."""
    meant = nearest_value(text, names)
    return f"write {meant}" if meant else f"write one of {', '.join(names)}"


def _string(_spec: FieldSpec, text: str) -> str:
    raise WrongValueError(f"{text} is not text in quotes", f'write "{text}"')


_PARSERS: dict[Kind, Callable[[FieldSpec, str], Any]] = {
    Kind.INT: _integer,
    Kind.FLOAT: _float,
    Kind.BOOL: _bool,
    Kind.ENUM: _enum,
    Kind.STRING: _string,
}


def parse_bare(spec: FieldSpec, text: str) -> Any:
    """The value of a word or number without quotes. Raises WrongValueError."""
    return _PARSERS[spec.kind](spec, text)


def refuse_quoted(spec: FieldSpec, text: str) -> WrongValueError:
    """The error for text in quotes where something else is wanted."""
    try:
        parse_bare(spec, text)
    except WrongValueError as wrong:
        return WrongValueError(f'"{text}" is text in quotes, but {spec.name} is a {spec.kind.value}', wrong.advice)
    return WrongValueError(
        f'"{text}" is text in quotes, but {spec.name} is a {spec.kind.value}', f"write {text} without quotes"
    )
