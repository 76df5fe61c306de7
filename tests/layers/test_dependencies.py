"""Each distribution declares what it imports, and no more."""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from layers.sources import distributions, sources

# Imported by name at run time, or by a library that is: uvicorn takes its event loop and its parser by their names.
TAKEN_BY_NAME = {"httptools", "uvloop"}
# Packages that several distributions share; the parts that are known.
SHARED = {"google.protobuf": "protobuf", "google.auth": "google-auth", "google.oauth2": "google-auth"}
# What a plugin or an extra brings, and what the tests of `moorage.testing` need.
OPTIONAL = {"hypothesis", "ml_dtypes", "pytest", "triton_python_backend_utils"}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def provides() -> dict[str, set[str]]:
    """Top-level modules and the distributions that bring them."""
    return {module: {normal(one) for one in names} for module, names in metadata.packages_distributions().items()}


def declared(distribution: Path) -> tuple[set[str], set[str]]:
    """The names of what is required, always and by an extra."""
    project = tomllib.loads((distribution / "pyproject.toml").read_text())["project"]
    extras = [one for group in project.get("optional-dependencies", {}).values() for one in group]
    required, optional = (
        {normal(re.split(r"[\s\[<>=~!;]", line, maxsplit=1)[0]) for line in lines}
        for lines in (project["dependencies"], extras)
    )
    return required, optional


def imported(distribution: Path) -> set[str]:
    own = {one.name for one in (distribution / "src").iterdir()} | {one.stem for one in (distribution / "src").glob("*.py")}
    names = {name for source in sources() if source.distribution == distribution for name in source.imports()}
    shared = {part for part in SHARED for name in names if f"{name}.".startswith(f"{part}.")}
    return {name.split(".")[0] for name in names} - set(sys.stdlib_module_names) - own - {"google"} | shared


def brought_by(module: str) -> set[str]:
    return {SHARED[module]} if module in SHARED else provides().get(module, {normal(module)})


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_what_is_imported_is_declared(distribution: Path) -> None:
    required, optional = declared(distribution)
    missing = {one for one in imported(distribution) - OPTIONAL if not brought_by(one) & (required | optional)}
    assert not missing


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_what_is_declared_is_imported(distribution: Path) -> None:
    required, _ = declared(distribution)
    used = {name for module in imported(distribution) for name in brought_by(module)}
    assert not required - used - TAKEN_BY_NAME - {"moorage"}
