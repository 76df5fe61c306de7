"""Names, sizes and the skeleton of each distribution."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from layers.sources import ROOT, Function, Source, core_sources, distributions, sources

LONGEST_MODULE = 500
LONGEST_FUNCTION = 80
CATCH_ALL_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
PLUGIN_API = ("moorage.backend", "moorage.control", "moorage.hookspecs", "moorage.storage")
SKELETON = ("pyproject.toml", "LICENSE", "README.md", "src", "tests")


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_a_module_is_named_and_sized_for_readers(source: Source) -> None:
    assert not CATCH_ALL_NAMES & set(source.name.split(".")), "a helper lives with its only caller; two make it a concept"
    assert len(source.text.splitlines()) <= LONGEST_MODULE
    too_long = {f"{one.name} ({lines(one)} lines)" for one in source.functions() if lines(one) > LONGEST_FUNCTION}
    assert not too_long


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.name)
def test_a_module_says_what_it_is_for(source: Source) -> None:
    assert ast.get_docstring(source.tree) or not source.tree.body


@pytest.mark.parametrize("name", PLUGIN_API)
def test_the_plugin_api_is_documented_whole(name: str) -> None:
    source = next(one for one in core_sources() if one.name == name)
    assert not [name for name, node in _public(source.tree) if not ast.get_docstring(node)]


def _public(tree: ast.Module) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    for node in tree.body:
        if isinstance(node, Function | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name, node


def test_functions_are_short_on_the_whole() -> None:
    sizes = sorted(lines(function) for source in core_sources() for function in source.functions())
    assert sizes[len(sizes) // 2] < 10


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_each_distribution_has_the_same_skeleton(distribution: Path) -> None:
    missing = [name for name in SKELETON if not (distribution / name).exists()]
    assert not missing
    packages = [one for one in (distribution / "src").iterdir() if one.is_dir() and (one / "__init__.py").exists()]
    assert len(packages) == 1, "one package each"
    assert (packages[0] / "py.typed").exists(), "the annotations are for users too"


@pytest.mark.parametrize("distribution", distributions(), ids=lambda path: path.name)
def test_each_distribution_describes_itself_alike(distribution: Path) -> None:
    project = tomllib.loads((distribution / "pyproject.toml").read_text())["project"]
    assert project["readme"] == "README.md"
    assert project["license"] == "Apache-2.0"
    assert (distribution / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes(), "each wheel carries the licence"
    assert project["requires-python"] == ">=3.11"
    if distribution != ROOT / "core":
        pin = next((one for one in project["dependencies"] if re.match(r"moorage\b(?!-)", one)), "")
        assert re.fullmatch(r"moorage\s*~=\s*\d+\.\d+", pin), "plugins pin the core as moorage ~= X.Y"
        assert project["entry-points"]["moorage"], "plugins are found through the entry-point group"


def test_test_files_have_names_of_their_own() -> None:
    seen: dict[str, Path] = {}
    for folder in (*distributions(), ROOT):
        for file in sorted((folder / "tests").rglob("test_*.py")):
            assert file.name not in seen, f"{file} and {seen[file.name]}"
            seen[file.name] = file
