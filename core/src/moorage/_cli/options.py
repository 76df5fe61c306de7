"""Click options out of the attributes of `ServerOptions`, so that flags are written down once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click

from moorage._app.flags import Flag, name_of, variable_of
from moorage._app.options import ServerOptions

F = TypeVar("F", bound=Callable[..., Any])


class GroupedCommand(click.Command):
    """A command whose help lists the options under the headings of their groups."""

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None:
                groups.setdefault(getattr(parameter, "group", "Other"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


class GroupedOption(click.Option):
    """An option that knows its heading."""

    def __init__(self, *declarations: str, group: str, **more: Any) -> None:
        super().__init__(declarations, **more)
        self.group = group


def server_options(command: F) -> F:
    """Give a command every flag of a server."""
    made = [_option(attribute) for attribute in attrs.fields(ServerOptions)]
    if isinstance(command, click.Command):
        command.params[:0] = made
    return command


def _option(attribute: attrs.Attribute[Any]) -> GroupedOption:
    flag = Flag.of(attribute)
    more: dict[str, Any] = {"help": flag.help, "envvar": variable_of(attribute), "group": flag.group}
    if flag.metavar:
        more["metavar"] = flag.metavar
    if flag.switch:
        return GroupedOption(name_of(attribute), *flag.aliases, attribute.name, is_flag=True, default=False, **more)
    more["type"] = click.Choice(flag.choices) if flag.choices else _type(attribute.default, flag)
    if not flag.inert and not flag.multiple:
        more |= {"default": attribute.default, "show_default": attribute.default != ""}
    return GroupedOption(name_of(attribute), *flag.aliases, attribute.name, multiple=flag.multiple, **more)


def _type(default: object, flag: Flag) -> Any:
    if flag.multiple or flag.inert:
        return str
    return {bool: click.BOOL, int: int, float: float}.get(type(default), str)
