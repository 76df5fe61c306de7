"""What a flag of the command line is.

Attribute metadata of `ServerOptions`, from which command line and reference page are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import attrs
from attrs import frozen

from moorage.errors import InvalidArgument

METADATA = "flag"
GREATEST = 2**31 - 1
"""What a number may be at most: gRPC and timers take no more."""

T = TypeVar("T")


@frozen
class Flag:
    """How an option is given. `group` is its heading in the help, `switch` a flag without a value, `inert` one that is accepted
    so that command lines can be moved over, but changes nothing here; its help says why. Numbers lie between `least` and
    `most`. `lower` says that capitals mean the same as small letters, `level` that true and false are taken for 1 and 0.
    """

    help: str
    group: str
    aliases: tuple[str, ...] = ()
    multiple: bool = False
    switch: bool = False
    choices: tuple[str, ...] = ()
    metavar: str = ""
    inert: bool = False
    least: int = 0
    most: int = GREATEST
    lower: bool = False
    level: bool = False

    @staticmethod
    def of(attribute: attrs.Attribute[Any]) -> Flag:
        """The flag behind an attribute of `ServerOptions`."""
        found: Flag = attribute.metadata[METADATA]
        return found


def name_of(attribute: attrs.Attribute[Any]) -> str:
    """The flag's name: "--http-port" for `http_port`."""
    return "--" + attribute.name.replace("_", "-")


def variable_of(attribute: attrs.Attribute[Any]) -> str:
    """The environment variable that gives the flag's value: "MOORAGE_HTTP_PORT" for `http_port`."""
    return "MOORAGE_" + attribute.name.upper()


class Group:
    """Makes the attributes of one group of flags."""

    def __init__(self, title: str) -> None:
        self._title = title

    def __call__(self, default: T, help: str, **more: Any) -> T:  # noqa: A002 (click's own word)
        """An attribute with this default."""
        flag = Flag(help, self._title, **more)
        converter = _lower if flag.lower else None
        value: T = attrs.field(default=default, metadata={METADATA: flag}, validator=_check, converter=converter)
        return value

    def many(self, help: str, **more: Any) -> tuple[str, ...]:  # noqa: A002
        """An attribute for a flag that may be given several times."""
        return self((), help, multiple=True, **more)

    def inert(self, help: str, **more: Any) -> str:  # noqa: A002
        """An attribute for a flag of Triton's that changes nothing here."""
        return self("", help, inert=True, **more)


def without_effect(options: attrs.AttrsInstance) -> Iterator[tuple[str, str]]:
    """The flags that were given and change nothing, each with the reason."""
    for attribute in attrs.fields(type(options)):
        flag = Flag.of(attribute)
        if flag.inert and getattr(options, attribute.name):
            yield name_of(attribute), flag.help


def _lower(text: Any) -> Any:
    return text.lower() if isinstance(text, str) else text


def _check(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    """Raises InvalidArgument that names the flag and what it takes."""
    flag = Flag.of(attribute)
    wrong = ""
    if flag.choices and value not in flag.choices:
        wrong = f"one of {', '.join(flag.choices)}"
    elif isinstance(value, int | float) and not flag.least <= value <= flag.most:
        wrong = f"a number from {flag.least}" + (" up" if flag.most == GREATEST else f" to {flag.most}")
    if wrong:
        raise InvalidArgument(f"{name_of(attribute)}={value}: write {wrong}")
