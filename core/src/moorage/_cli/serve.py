"""`moorage serve`: run a server until it is told to end."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from moorage._app.application import Application
from moorage._app.options import ServerOptions
from moorage._cli.options import GroupedCommand, server_options
from moorage._cli.table import print_models
from moorage.errors import MoorageError


@server_options
@click.command(cls=GroupedCommand)
def serve(**given: Any) -> None:
    """Serve the models of one or more model repositories over HTTP and gRPC.

    The flags are those of Triton's tritonserver; each can also be given as an environment variable MOORAGE_<FLAG>.
    """
    options = ServerOptions(**{name: value for name, value in given.items() if value is not None})
    if not options.model_repository:
        raise click.UsageError("no model repository; give its folder or URL with --model-repository=PATH")
    try:
        code = Application(options).run(on_started=print_models)
    except MoorageError as error:
        click.echo(f"moorage: {error}", err=True)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of models that never end must not keep the process alive
