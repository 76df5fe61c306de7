"""`moorage completion`: the script that completes commands and flags in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command(short_help="Print the completion script for bash, zsh or fish.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell, e.g. `eval "$(moorage completion bash)"`."""
    made = get_completion_class(shell)
    root = context.find_root()
    if made is None:
        raise click.ClickException(f"no completion for {shell}")
    click.echo(made(root.command, {}, "moorage", "_MOORAGE_COMPLETE").source())
