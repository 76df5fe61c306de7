"""`moorage serve`: run a server until it is told to end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from moorage._app.options import ServerOptions
from moorage._cli.options import GroupedCommand, server_options
from moorage._logging import get_logger
from moorage.errors import InvalidArgument, MoorageError


@server_options
@click.command(cls=GroupedCommand, short_help="Serve model repositories over HTTP and gRPC.")
def serve(**given: Any) -> None:
    """Serve the models of one or more model repositories over HTTP and gRPC.

    The flags are those of Triton's tritonserver; each can also be given as an environment variable MOORAGE_<FLAG>.
    """
    from moorage._app.application import Application  # noqa: PLC0415 (help and completion do without the server)
    from moorage._cli.bars import bars  # noqa: PLC0415
    from moorage._cli.table import print_models  # noqa: PLC0415

    options = _options(given)
    try:
        reporter = bars() if options.log_format == "default" and not options.log_file else None
        code = Application(options, reporter).run(on_started=_nothing if _logs_json(options) else print_models)
    except MoorageError as error:
        _complain(error, options)
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # threads of models that never end must not keep the process alive


def _logs_json(options: ServerOptions) -> bool:
    """Whether standard error is read by a program, which takes nothing but the lines of the log."""
    return options.log_format == "json" and not options.log_file


def _nothing(_entries: Sequence[object]) -> None:
    return None


def _complain(error: MoorageError, options: ServerOptions) -> None:
    if _logs_json(options):
        get_logger("moorage").error("not started", error=str(error))
    else:
        click.echo(f"moorage: {error}", err=True)


def _options(given: dict[str, Any]) -> ServerOptions:
    try:
        options = ServerOptions(**{name: value for name, value in given.items() if value is not None})
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    if not options.model_repository:
        raise click.UsageError("no model repository; give its folder or URL with --model-repository=PATH")
    return options
