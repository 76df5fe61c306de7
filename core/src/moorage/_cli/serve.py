"""`moorage serve`: run a server until it is told to end."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from moorage._app.options import ServerOptions
from moorage._cli.options import GroupedCommand, server_options
from moorage.errors import InvalidArgument, MoorageError


@server_options
@click.command(cls=GroupedCommand, short_help="Serve model repositories over HTTP and gRPC.")
def serve(**given: Any) -> None:
    """Serve the models of one or more model repositories over HTTP and gRPC.

    The flags are those of Triton's tritonserver; each can also be given as an environment variable MOORAGE_<FLAG>.
    """
    from moorage._app.application import Application  # noqa: PLC0415 (help and completion do without the server)
    from moorage._cli.table import print_models  # noqa: PLC0415

    options = _options(given)
    try:
        code = Application(options).run(on_started=print_models)
    except MoorageError as error:
        click.echo(f"moorage: {error}", err=True)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of models that never end must not keep the process alive


def _options(given: dict[str, Any]) -> ServerOptions:
    try:
        options = ServerOptions(**{name: value for name, value in given.items() if value is not None})
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    if not options.model_repository:
        raise click.UsageError("no model repository; give its folder or URL with --model-repository=PATH")
    return options
