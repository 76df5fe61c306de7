"""`moorage plugins`: what is installed, and what each plugin brings."""

from __future__ import annotations

import json

import attrs
import click

from moorage import __version__


@click.command(short_help="List the plugins and what each brings.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--block-plugin", multiple=True, metavar="NAME", help="A plugin not to use.")
def plugins(as_json: bool, block_plugin: tuple[str, ...]) -> None:
    """List the plugins: name, distribution, version, and what each registered. Imports no framework."""
    from moorage._app.wiring import load_plugins  # noqa: PLC0415 (help and completion do without the server)

    found = load_plugins(block_plugin).plugins
    if as_json:
        click.echo(json.dumps([attrs.asdict(plugin) for plugin in found], indent=2))
        return
    from moorage._cli.table import print_table  # noqa: PLC0415

    rows = [
        (
            plugin.name,
            plugin.distribution or "moorage (built in)",
            plugin.version or __version__,
            "\n".join(plugin.registered) or "-",
        )
        for plugin in found
    ]
    print_table(("Plugin", "Distribution", "Version", "Registers"), rows)
    for plugin in found:
        if plugin.error:
            click.secho(f"{plugin.name}: {plugin.error}", fg="red", err=True)
