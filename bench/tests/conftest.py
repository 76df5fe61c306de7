"""Makes the benchmarks importable, and a plan whose servers and load generators are stubs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from moorage_bench.plan import Plan, Sides, Tools  # noqa: E402
from moorage_bench.servers import Ports, ServerSpec  # noqa: E402
from moorage_bench.tools import Tool  # noqa: E402


def stub_server(name: str, *flags: str) -> Callable[[Path], ServerSpec]:
    """A side that is the stub server, whatever the repository."""

    def spec(_repository: Path) -> ServerSpec:
        ports = Ports.free()
        return ServerSpec(name, (sys.executable, str(HERE / "stub_server.py"), str(ports.http), *flags), ports)

    return spec


@pytest.fixture
def stub_side() -> Callable[..., Callable[[Path], ServerSpec]]:
    """Makes sides out of a name and flags of the stub server."""
    return stub_server


def stub_tool() -> Tool:
    return Tool((sys.executable, str(HERE / "stub_load.py")))


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return Plan(
        workspace=tmp_path,
        rounds=2,
        seconds=0.02,
        warmup_s=0.0,
        models=20,
        cycles=12,
        megabytes=2,
        sides=Sides(stub_server("moorage"), stub_server("triton"), stub_server("mlserver")),
        tools=Tools(stub_tool, stub_tool, dict, dict),
        progress=lambda _line: None,
    )
