"""Pytest fixtures that serve a temporary repository.

Say `pytest_plugins = ["moorage.testing.fixtures"]` in the conftest.py at the root of your tests. (They are not registered for
every pytest run of an environment: that would have each of them load the server.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from moorage.server import Server
from moorage.testing.repository import RepositoryBuilder

StartServer = Callable[..., Server]
"""Starts a server: `start(**options)`, with the options of `moorage.Server`."""


@pytest.fixture
def moorage_repository(tmp_path: Path) -> RepositoryBuilder:
    """An empty model repository of this test."""
    return RepositoryBuilder(tmp_path / "repository")


@pytest.fixture
def moorage_server(moorage_repository: RepositoryBuilder) -> Iterator[StartServer]:
    """Starts servers of `moorage_repository` (or of `model_repository=...`), which are closed at the end of the test."""
    with ExitStack() as servers:

        def start(**options: Any) -> Server:
            chosen = {"model_repository": moorage_repository.path, **options}
            return servers.enter_context(Server(**chosen))

        yield start
