"""Template variables (`${NAME}`) in configurations: filled in from given values, or refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moorage.config.fields import FieldSpec, Kind
from moorage.config.scalars import WrongValueError, parse_bare
from moorage.config.tokens import NUMBER, WORD, Tokens

_VARIABLE = re.compile(r"\$\{([^{}\n\"']*)\}")


def variable_name(text: str) -> str:
    """The name in a template variable, however that is written."""
    return text.strip("${} \t")


def fill_value(spec: FieldSpec, name: str, variables: Mapping[str, str] | None) -> Any:
    """The value of a field that is a variable alone.

    The variable's text becomes exactly one value, whatever it holds: it can never add fields. Raises WrongValueError.
    """
    text = _lookup(name, variables)
    if spec.kind is Kind.STRING:
        return text
    tokens = Tokens(text)
    if len(tokens.kinds) != 2 or tokens.kinds[0] not in (WORD, NUMBER):
        raise WrongValueError(f"the template variable {name} is not a single value", f"set {name} to one {spec.kind.value}")
    return parse_bare(spec, tokens.texts[0])


def fill_text(text: str, variables: Mapping[str, str]) -> str:
    """A text with the variables inside it filled in. Raises WrongValueError for one that has no value."""
    return _VARIABLE.sub(lambda match: _lookup(match[1], variables), text)


def whole_variable(text: str) -> str | None:
    """The name of the variable that the text is, or None if it is not one variable and nothing else."""
    match = _VARIABLE.fullmatch(text)
    return None if match is None else match[1]


def block_fault(name: str) -> tuple[str, str]:
    """Message and advice for a variable where a block of fields is wanted: it can stand for one value only."""
    return f"unresolved template variable {name}", "write the fields themselves: a variable stands for a single value"


def _lookup(name: str, variables: Mapping[str, str] | None) -> str:
    text = (variables or {}).get(name.strip())
    if text is None:
        raise WrongValueError(f"unresolved template variable {name}", _advice(name, known=variables is not None))
    if not text.isprintable():
        raise WrongValueError(f"the template variable {name} holds a line break or a control character", "set it to one value")
    return text


def _advice(name: str, *, known: bool) -> str:
    if known:
        return f"set {name} in the environment of the server"
    return f"write the value in place of ${{{name}}}; for files, --substitute-variables takes it from the environment"
