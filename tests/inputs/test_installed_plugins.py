"""A server beside plugins that are fine, that cannot be imported, and that claim what another has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inputs.conftest import Serve
from inputs.models import copy, io
from inputs.repository import model, write

FINE = """
import pathlib

import numpy as np

from moorage.backend import Backend, BatchInstance, LoadedModel
from moorage.hookspecs import hookimpl


class Echo(BatchInstance):
    def run(self, inputs, outputs):
        return {{"Y": inputs["X"]}}


class Model(LoadedModel):
    def instance(self, placement):
        return Echo()


class Fine(Backend):
    name = {name!r}

    def load(self, context):
        pathlib.Path({mark!r}).touch()
        return Model()


@hookimpl
def backends():
    return [Fine]
"""
BROKEN = "import a_framework_that_is_missing\n"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder of packages as an installer leaves them: distribution, plugin, code."""
    site = tmp_path / "site"
    plugins = [
        ("one-dist", "fine", FINE.format(name="echo", mark=str(tmp_path / "fine.used"))),
        ("idle-dist", "idle", FINE.format(name="idle", mark=str(tmp_path / "idle.used"))),
        ("broken-dist", "broken", BROKEN),
        ("left-dist", "left", FINE.format(name="twice", mark=str(tmp_path / "left.used"))),
        ("right-dist", "right", FINE.format(name="twice", mark=str(tmp_path / "right.used"))),
        ("same-a", "same", FINE.format(name="echo_a", mark=str(tmp_path / "a.used"))),
        ("same-b", "same", FINE.format(name="echo_b", mark=str(tmp_path / "b.used"))),
    ]
    for distribution, plugin, code in plugins:
        folder = f"{distribution.replace('-', '_')}-1.0.dist-info"
        module = f"plugin_{distribution}".replace("-", "_")
        write(
            site,
            {
                f"{module}.py": code,
                f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n",
                f"{folder}/entry_points.txt": f"[moorage]\n{plugin} = {module}\n",
            },
        )
    return site


def test_each_model_is_told_about_the_plugin_it_needs(serve: Serve, installed: Path) -> None:
    files = model("ident", copy())
    for name, backend in (("works", "echo"), ("lost", "broken"), ("claimed", "twice"), ("a", "echo_a"), ("b", "echo_b")):
        files |= model(name, {"config.pbtxt": f'backend: "{backend}"\n{io()}', "1/model.bin": ""})
    server = serve(files, "--exit-on-error=false", environment={"PYTHONPATH": str(installed)})
    assert server.output("ident", [1]) == [1]
    assert server.output("works", [2]) == [2]
    (lost,) = server.index("lost")
    assert "a_framework_that_is_missing" in lost["reason"]
    assert "broken-dist" in lost["reason"]
    (claimed,) = server.index("claimed")
    assert "left-dist" in claimed["reason"]
    assert "right-dist" in claimed["reason"]
    assert [server.output(name, [3]) for name in "ab"] == [[3], [3]]
    assert not (installed.parent / "idle.used").exists()


def test_all_are_listed_with_what_is_wrong(installed: Path) -> None:
    command = [str(Path(sys.executable).with_name("moorage")), "plugins", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    listed = {plugin["distribution"]: plugin for plugin in json.loads(done.stdout)}
    assert listed["one-dist"]["error"] == listed["idle-dist"]["error"] == ""
    assert "Traceback" in listed["broken-dist"]["error"]
    assert "No module named 'a_framework_that_is_missing'" in listed["broken-dist"]["error"]
    for distribution in ("left-dist", "right-dist"):
        assert "left-dist" in listed[distribution]["error"]
        assert "right-dist" in listed[distribution]["error"]
    assert all("twice" not in " ".join(listed[one]["registered"]) for one in ("left-dist", "right-dist"))
    for distribution in ("same-a", "same-b"):
        assert "same-a" in listed[distribution]["error"]
        assert "same-b" in listed[distribution]["error"]
