"""The page of the backends names what is installed, and leads to a page for each."""

from __future__ import annotations

import re

import pytest

from docs.fences import ROOT
from moorage._app.wiring import load_plugins
from moorage.testing.backend_suite.base import BackendSuite

FOLDER = ROOT / "docs" / "reference" / "backends"
INDEX = (FOLDER / "index.md").read_text(encoding="utf-8")
REGISTRY = load_plugins()


@pytest.mark.parametrize("name", sorted(REGISTRY.backends))
def test_every_backend_is_on_the_page(name: str) -> None:
    assert f"| `{name}` |" in INDEX


@pytest.mark.parametrize("platform", sorted(REGISTRY.platforms))
def test_every_platform_is_on_the_page_beside_its_backend(platform: str) -> None:
    backend = REGISTRY.platforms[platform]
    (line,) = [line for line in INDEX.splitlines() if line.startswith(f"| `{backend}` | `moorage-")]
    assert f"`{platform}`" in line


HOOKS = ("add_sub", "identities", "with_weights", "formats", "mutants", "corruptions")


@pytest.mark.parametrize("name", [*BackendSuite.__annotations__, *HOOKS])
def test_what_a_backend_s_author_gives_to_the_suite_is_explained(name: str) -> None:
    page = (ROOT / "docs" / "how-to" / "test-a-backend.md").read_text(encoding="utf-8")
    assert hasattr(BackendSuite, name) or name == "backend"
    assert re.search(rf"`{name}[`(]", page)


@pytest.mark.parametrize("page", sorted(path.name for path in FOLDER.glob("*.md") if path.name != "index.md"))
def test_the_page_leads_to_every_other(page: str) -> None:
    assert f"]({page})" in INDEX
