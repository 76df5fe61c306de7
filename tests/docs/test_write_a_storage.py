"""The plugin of the page about storages, put together from its blocks, passes its own tests and serves a model."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs.fences import ROOT, read

SERVE = """
import sqlite3
import moorage

with sqlite3.connect("models.db") as database:
    database.execute("CREATE TABLE files (path TEXT PRIMARY KEY, content BLOB, number INTEGER)")
    for name in ("config.pbtxt", "1/model.py"):
        with open(f"{root}/examples/repository/add_sub/{name}", "rb") as file:
            database.execute("INSERT INTO files VALUES (?, ?, 1)", (f"add_sub/{name}", file.read()))
database.close()
with moorage.Server(model_repository=f"sqlite://{folder}/models.db") as server:
    print([(entry.name, entry.state) for entry in server.index()])
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, as an installation would leave it, and its test."""
    folder = tmp_path_factory.mktemp("sqlite")
    blocks = [block for block in read(ROOT / "docs" / "how-to" / "write-a-storage.md") if block.mark != "run"]
    storage, plugin, test = (block.code for block in blocks if block.language == "python")
    (project,) = (tomllib.loads(block.code) for block in blocks if block.language == "toml")
    package, metadata = folder / "moorage_sqlite", folder / "moorage_sqlite-0.1.0.dist-info"
    for path in (package, metadata):
        path.mkdir()
    (package / "__init__.py").touch()
    (package / "storage.py").write_text(storage)
    (package / "plugin.py").write_text(plugin)
    (folder / "test_sqlite_storage.py").write_text(test)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['project']['name']}\nVersion: 0.1.0\n")
    points = project["project"]["entry-points"]["moorage"]
    (metadata / "entry_points.txt").write_text("\n".join(["[moorage]", *(f"{key} = {value}" for key, value in points.items())]))
    return folder


def run(folder: Path, *command: str) -> str:
    env = os.environ | {"PYTHONPATH": str(folder)}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_tests_pass(installed: Path) -> None:
    said = run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={installed}", "test_sqlite_storage.py")
    assert " passed" in said


def test_it_is_found_by_its_entry_point_and_serves(installed: Path) -> None:
    code = f"root, folder = {str(ROOT)!r}, {str(installed)!r}\n{SERVE}"
    assert "[('add_sub', 'READY')]" in run(installed, "-c", code)
