"""Imports go down only, each library has its room, and plugins use public names."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import pytest

from layers.sources import ROOT, Source, core_sources, distributions, plugin_sources

# Which rooms of the core may import a library. `testing` is free to.
ROOMS = {
    "pluggy": ("moorage._plugins", "moorage.hookspecs"),
    "litestar": ("moorage._server",),
    "uvicorn": ("moorage._server",),
    "httptools": ("moorage._server",),
    "uvloop": ("moorage._server", "moorage._app", "moorage._cli"),
    "grpc": ("moorage._server",),
    "grpc_health": ("moorage._server",),
    "grpc_reflection": ("moorage._server",),
    "google.protobuf": ("moorage.config", "moorage._server"),
    "prometheus_client": ("moorage._server", "moorage._execution", "moorage._inference", "moorage._app"),
    "fsspec": ("moorage._storage", "moorage.storage"),
    "aiohttp": ("moorage._storage.schemes",),
    "click": ("moorage._cli",),
    "rich": ("moorage._cli", "moorage._logging"),
}
FRAMEWORKS = {"torch", "tensorflow", "onnxruntime", "onnx", "openvino", "tensorrt", "s3fs", "gcsfs", "adlfs"}


def within(module: str, room: str) -> bool:
    return module == room or module.startswith(room + ".")


def test_imports_between_the_rooms_go_down_only() -> None:
    """In a process of its own: the linter sets up logging anew, which closes what frameworks in this one log to."""
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports('pyproject.toml', no_cache=True))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("library", ROOMS)
def test_a_library_is_imported_in_its_rooms_only(library: str) -> None:
    strangers = {
        source.name
        for source in core_sources()
        if any(within(module, library) for module in source.imports())
        and not any(within(source.name, room) for room in (*ROOMS[library], "moorage.testing"))
    }
    assert not strangers, f"{library} is for {ROOMS[library]} alone"


@pytest.mark.parametrize("source", plugin_sources(), ids=lambda source: source.name)
def test_plugins_import_public_names_only(source: Source) -> None:
    private = {module for module in source.imports() if module.startswith("moorage.") and "._" in module}
    assert not private, f"{source.file} imports what is not promised: {private}"


@pytest.mark.parametrize("distribution", distributions()[1:], ids=lambda path: path.name)
def test_the_entry_module_of_a_plugin_imports_no_framework(distribution: object) -> None:
    for source in plugin_sources():
        if source.distribution == distribution and source.name in _entry_modules(source):
            heavy = {module for module in source.imports(at_import_time=True) if module.split(".")[0] in FRAMEWORKS}
            assert not heavy, f"{source.file} is imported whenever plugins are listed; import {heavy} in Backend.load"


def _entry_modules(source: Source) -> set[str]:
    project = tomllib.loads((source.distribution / "pyproject.toml").read_text())["project"]
    return {target.split(":")[0] for target in project.get("entry-points", {}).get("moorage", {}).values()}
