"""How a run is made: how long, how often, where files go, and which servers and tools take part."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import field, frozen

from moorage_bench import peers, tools
from moorage_bench.servers import ServerSpec
from moorage_bench.tools import Tool


@frozen
class Sides:
    """Each function installs a server if need be and says how it is started on a repository. Raises MissingPeerError."""

    moorage: Callable[[Path], ServerSpec] = peers.moorage
    triton: Callable[[Path], ServerSpec] = peers.triton
    mlserver: Callable[[Path], ServerSpec] = peers.mlserver


@frozen
class Tools:
    """Each function installs a load generator if need be. Raises MissingPeerError."""

    wrk: Callable[[], Tool] = tools.wrk
    perf_analyzer: Callable[[], Tool] = tools.perf_analyzer
    allocators: Callable[[], Mapping[str, Path]] = tools.allocators
    s3_clients: Callable[[], Mapping[str, Path]] = tools.s3_clients


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@frozen
class Plan:
    """`rounds` readings of about `seconds` each for every side of every point, after `warmup_s` that are thrown away."""

    workspace: Path
    rounds: int = 5
    seconds: float = 3.0
    warmup_s: float = 1.0
    patience_s: float = 0.0
    """How long each round may wait for a moment in which the machine has nothing else to do."""
    models: int = 10_000
    """Size of the repository that is scanned."""
    cycles: int = 200
    """How often a model is loaded and unloaded where that is measured."""
    megabytes: int = 200
    """Size of the large file that is downloaded; ten times as much where memory is looked at."""
    with_thread: bool = False
    """Measure moorage a second time, with its Python models in threads of the server."""
    sides: Sides = field(factory=Sides)
    tools: Tools = field(factory=Tools)
    progress: Callable[[str], None] = _to_stderr

    def folder(self, *parts: str) -> Path:
        """A folder of the workspace, made if it is not there."""
        path = self.workspace.joinpath(*parts)
        path.mkdir(parents=True, exist_ok=True)
        return path
