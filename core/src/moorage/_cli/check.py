"""`moorage check`: every fault of a repository, without serving it."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import attrs
import click

from moorage._app.options import ServerOptions
from moorage.errors import MoorageError

if TYPE_CHECKING:
    from moorage._app.check import Finding, Report


@click.command(short_help="List every fault of model repositories, without serving them.")
@click.argument("repository", nargs=-1, required=True, metavar="REPOSITORY...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-load", is_flag=True, help="Look at layout and configurations only; load no model file, run no model code.")
@click.option("--model-config-name", default="", metavar="NAME", help="As for serve.")
@click.option("--model-namespacing", is_flag=True, help="As for serve.")
@click.option("--disable-auto-complete-config", is_flag=True, help="As for serve.")
@click.option("--substitute-variables", is_flag=True, help="As for serve.")
@click.option("--backend-config", multiple=True, metavar="BACKEND,KEY=VALUE", help="As for serve.")
@click.option("--model-cache-dir", default="", metavar="PATH", help="As for serve.")
@click.option("--model-cache-size", default="50GiB", metavar="SIZE", help="As for serve.")
@click.pass_context
def check(
    context: click.Context,
    repository: tuple[str, ...],
    as_json: bool,
    no_load: bool,
    model_config_name: str,
    model_namespacing: bool,
    disable_auto_complete_config: bool,
    substitute_variables: bool,
    backend_config: tuple[str, ...],
    model_cache_dir: str,
    model_cache_size: str,
) -> None:
    """List every fault of model repositories. Each model is loaded once and closed again. Exit code 1 if there is a fault."""
    from moorage._app.check import check as find_faults  # noqa: PLC0415 (help and completion do without the server)
    from moorage._cli.bars import bars  # noqa: PLC0415

    options = ServerOptions(
        model_repository=repository,
        model_config_name=model_config_name,
        model_namespacing=model_namespacing,
        disable_auto_complete_config=disable_auto_complete_config,
        substitute_variables=substitute_variables,
        backend_config=backend_config,
        model_cache_dir=model_cache_dir,
        model_cache_size=model_cache_size,
    )
    try:
        report = find_faults(options, load=not no_load, tell=partial(click.echo, err=True), reporter=bars())
    except MoorageError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps([attrs.asdict(finding) for finding in report.findings], indent=2))
    else:
        _print(report)
    context.exit(1 if report.findings else 0)


def _print(report: Report) -> None:
    from moorage._cli.table import print_table  # noqa: PLC0415

    if report.findings:
        print_table(("Model", "Version", "Where", "Fault", "What to do"), [_row(finding) for finding in report.findings])
    else:
        click.echo("No faults." if report.models else "There are no models.")


def _row(finding: Finding) -> tuple[str, ...]:
    fault = finding.fault
    place = f"{fault.file}:{fault.line}" if fault.line else fault.file
    where = "\n".join(part for part in (place, fault.field) if part)
    version = "" if finding.version is None else str(finding.version)
    return finding.model, version, where, fault.message, fault.advice
