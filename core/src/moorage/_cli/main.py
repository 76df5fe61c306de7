"""The root of the command line."""

from __future__ import annotations

import click

from moorage import __version__
from moorage._cli.check import check
from moorage._cli.completion import completion
from moorage._cli.plan import plan
from moorage._cli.plugins import plugins
from moorage._cli.serve import serve


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="moorage")
def main() -> None:
    """Serve machine-learning models out of Triton model repositories."""


main.add_command(serve)
main.add_command(check)
main.add_command(plan)
main.add_command(plugins)
main.add_command(completion)
