"""The command line: `moorage serve`, `moorage check`, `moorage plugins`."""

from moorage._cli.main import main

__all__ = ["main"]
