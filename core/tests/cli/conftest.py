"""The command line, in this process."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from moorage._cli import main


@pytest.fixture
def moorage() -> Callable[..., Result]:
    """Run `moorage` with these arguments and variables."""

    def run(*arguments: str, **variables: str) -> Result:
        return CliRunner().invoke(main, list(arguments), env=variables, prog_name="moorage")

    return run
