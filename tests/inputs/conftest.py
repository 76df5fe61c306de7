"""Servers for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from inputs.live import LiveServer, start
from inputs.repository import Files, write

Serve = Callable[..., LiveServer]


def _serving(folder: Path) -> Iterator[Serve]:
    running: list[LiveServer] = []

    def serve(files: Files | None = None, *flags: str, environment: Mapping[str, str] | None = None) -> LiveServer:
        place = folder / f"server-{len(running)}"
        write(place / "repository", files or {})
        server = start(place, flags, environment)
        running.append(server)
        return server

    yield serve
    for server in running:
        server.close()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server for one test: `serve(files, *flags)`."""
    yield from _serving(tmp_path)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts a server for the tests of a module."""
    yield from _serving(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A model's name that no other test uses."""
    return "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[:200]
