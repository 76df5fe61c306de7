"""`moorage plugins`: what is installed, and what each plugin brings."""

from __future__ import annotations

import json

import attrs
import click
from rich.console import Console
from rich.table import Table

from moorage._app.wiring import load_plugins


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--block-plugin", multiple=True, metavar="NAME", help="A plugin not to use.")
def plugins(as_json: bool, block_plugin: tuple[str, ...]) -> None:
    """List the plugins: name, distribution, version, and what each registered. Imports no framework."""
    found = load_plugins(block_plugin).plugins
    if as_json:
        click.echo(json.dumps([attrs.asdict(plugin) for plugin in found], indent=2))
        return
    table = Table("Plugin", "Distribution", "Version", "Registers")
    for plugin in found:
        table.add_row(plugin.name, plugin.distribution, plugin.version, "\n".join(plugin.registered) or "-")
    Console().print(table)
    for plugin in found:
        if plugin.error:
            click.secho(f"{plugin.name}: {plugin.error}", fg="red", err=True)
