"""Fake distributions with entry points, as an installer would leave them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoints, distributions
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[[str, str, str], None]


@pytest.fixture(autouse=True)
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install(distribution, plugin, code)` puts a plugin there; only these plugins are seen."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def seen(*, group: str) -> EntryPoints:
        found = [entry for dist in distributions(path=[str(tmp_path)]) for entry in dist.entry_points]
        return EntryPoints(found).select(group=group)

    monkeypatch.setattr("moorage._plugins.load.entry_points", seen)

    def put(distribution: str, plugin: str, code: str) -> None:
        module = f"fake_{tmp_path.name.replace('-', '_')}_{distribution}_{plugin}".replace("-", "_")
        (tmp_path / f"{module}.py").write_text(dedent(code))
        info = tmp_path / f"{distribution}-1.2.dist-info"
        info.mkdir(exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
        entries = info / "entry_points.txt"
        before = entries.read_text() if entries.exists() else "[moorage]\n"
        entries.write_text(f"{before}{plugin} = {module}\n")

    return put


@pytest.fixture
def backend_code() -> Callable[[str, str], str]:
    """The code of a plugin with one backend: `backend_code(name, platform)`."""

    def code(name: str, platform: str) -> str:
        return dedent(f"""
            from moorage.backend import Backend
            from moorage.hookspecs import hookimpl

            class Fake(Backend):
                name = {name!r}
                platforms = ({platform!r},) if {platform!r} else ()

                def load(self, context):
                    raise NotImplementedError

            @hookimpl
            def backends():
                return [Fake]
            """)

    return code
