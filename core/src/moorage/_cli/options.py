"""Click options out of the attributes of `ServerOptions`, so that flags are written down once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs
import click
from click.shell_completion import CompletionItem

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
    """An option that knows its heading, and names its variable where a value is wrong."""

    def __init__(self, *declarations: str, group: str, **more: Any) -> None:
        super().__init__(declarations, **more)
        self.group = group

    def get_error_hint(self, context: click.Context | None) -> str:
        return f"{super().get_error_hint(context)} (or {self.envvar})"


class TrueOrFalse(click.types.BoolParamType):
    """A boolean with a value, as Triton's flags have them. What click takes is taken; `true` and `false` are shown."""

    name = "true|false"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> bool:
        try:
            return bool(super().convert(value, param, context)) if value != "" else self._refuse(value, param, context)
        except click.BadParameter:
            return self._refuse(value, param, context)

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return self.name

    def shell_complete(self, context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(word) for word in self.name.split("|") if word.startswith(incomplete)]

    def _refuse(self, value: object, param: click.Parameter | None, context: click.Context | None) -> bool:
        raise click.BadParameter(f"'{value}' is neither true nor false", context, param)


class Level(click.types.IntParamType):
    """A number, or true or false for 1 and 0."""

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> int:
        words = {"true": 1, "false": 0}
        return int(super().convert(words.get(str(value).lower(), value), param, context))


class Place(click.types.StringParamType):
    """A path or URL: completed as a path, and judged by the server."""

    name = "path"

    def shell_complete(self, context: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


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
    more["type"] = click.Choice(flag.choices, case_sensitive=False) if flag.choices else _type(attribute.default, flag)
    if isinstance(attribute.default, bool):
        more |= {"default": attribute.default, "help": f"{flag.help}  [default: {str(attribute.default).lower()}]"}
    elif not flag.inert and not flag.multiple:
        more |= {"default": attribute.default, "show_default": attribute.default != ""}
    return GroupedOption(name_of(attribute), *flag.aliases, attribute.name, multiple=flag.multiple, **more)


def _type(default: object, flag: Flag) -> Any:
    if flag.metavar in ("PATH", "FILE"):
        return Place()
    if flag.multiple or flag.inert:
        return str
    if flag.level:
        return Level()
    return {bool: TrueOrFalse(), int: int, float: float}.get(type(default), str)
