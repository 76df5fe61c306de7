"""Servers as processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from inputs.live import LiveServer, start
from inputs.repository import Files, write

Serve = Callable[..., LiveServer]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts a server of some files: `serve(files, *flags)`."""
    running: list[LiveServer] = []

    def started(files: Files, *flags: str, environment: Mapping[str, str] | None = None) -> LiveServer:
        place = tmp_path / f"server-{len(running)}"
        write(place / "repository", files)
        running.append(start(place, list(flags), environment))
        return running[-1]

    yield started
    for server in running:
        server.close()
