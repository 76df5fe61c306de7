"""`moorage plan`: what a start, or the next poll of a running server, would do."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs
import click

from moorage._app.options import ServerOptions
from moorage.errors import MoorageError

if TYPE_CHECKING:
    from moorage._control.forecast import Step

_STYLE = {"load": "green", "replace": "yellow", "update": "yellow", "unload": "magenta", "keep": "dim", "refuse": "red"}


@click.command(short_help="Show what a start, or the next poll, would do.")
@click.argument("repository", nargs=-1, metavar="[REPOSITORY...]")
@click.option("--server", default="", metavar="URL", help="A running server to compare with: its HTTP endpoint.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--model-config-name", default="", metavar="NAME", help="As for serve.")
@click.option("--model-namespacing", is_flag=True, help="As for serve.")
@click.option("--disable-auto-complete-config", is_flag=True, help="As for serve.")
@click.option("--substitute-variables", is_flag=True, help="As for serve.")
@click.pass_context
def plan(
    context: click.Context,
    repository: tuple[str, ...],
    server: str,
    as_json: bool,
    model_config_name: str,
    model_namespacing: bool,
    disable_auto_complete_config: bool,
    substitute_variables: bool,
) -> None:
    """Show what a start with these model repositories would load, or refuse, without doing it.

    With --server: what the next poll of that server would load, replace, update or unload. Without a repository, the server
    itself says so of its own; with some, its configurations are compared with theirs (the contents of files are not). Exit code
    1 if something is refused.
    """
    from moorage._app.plan import plan as make_plan  # noqa: PLC0415  a command line that only completes needs no server
    from moorage._app.served import planned, served  # noqa: PLC0415

    if not repository and not server:
        raise click.UsageError("give model repositories, or --server=URL for those of a running server")
    options = ServerOptions(
        model_repository=repository,
        model_namespacing=model_namespacing,
        model_config_name=model_config_name,
        disable_auto_complete_config=disable_auto_complete_config,
        substitute_variables=substitute_variables,
    )
    try:
        steps = make_plan(options, served(server) if server else {}) if repository else planned(server)
    except MoorageError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps([attrs.asdict(step) for step in steps], indent=2))
    else:
        _print(steps)
    context.exit(1 if any(step.action == "refuse" for step in steps) else 0)


def _print(steps: Sequence[Step]) -> None:
    from rich.text import Text  # noqa: PLC0415

    from moorage._cli.table import print_table  # noqa: PLC0415

    rows = [
        (step.model, "" if step.version is None else str(step.version), Text(step.action, _STYLE[step.action]), step.reason)
        for step in steps
    ]
    if rows:
        print_table(("Model", "Version", "Action", "Reason"), rows)
    else:
        click.echo("There are no models.")
