"""Code blocks marked `<!-- run -->` run, and configurations in the documentation are ones."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from docs.conftest import ExampleServer
from docs.fences import ROOT, SHELLS, Block, blocks, fits, pages, read
from moorage.config import parse_text, validate

RUNNABLE = [block for block in blocks() if block.mark == "run"]
CONFIGURATIONS = [block for block in blocks() if block.language == "pbtxt"]


@pytest.mark.parametrize("block", RUNNABLE, ids=lambda block: block.id)
def test_a_block_runs(block: Block, server: ExampleServer) -> None:
    code = server.addressed(block.code)
    if block.language in SHELLS:
        if "curl" in code and shutil.which("curl") is None:
            pytest.skip("curl is not installed")
        done = server.run(["bash", "-euo", "pipefail", "-c", code])
    else:
        assert block.language == "python", "bash and python blocks can be run"
        done = server.run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stdout + done.stderr
    if block.output is not None:
        assert fits(block.output, done.stdout), done.stdout


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=lambda block: block.id)
def test_a_configuration_is_one(block: Block) -> None:
    parsed = parse_text(block.code, file=block.id)
    if block.mark != "fragment":
        assert not validate(parsed)


@pytest.mark.parametrize("page", [*pages()], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [one for one in targets if "://" not in one and not (page.parent / one).exists()]
    assert not missing


def test_the_readme_leads_to_every_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [page for page in pages() if "docs" in page.relative_to(ROOT).parts and str(page.relative_to(ROOT)) not in readme]
    assert not missing


def test_the_readme_shows_what_is_run() -> None:
    assert any(block.file.name == "README.md" and block.file.parent == ROOT for block in RUNNABLE)


def test_marks_and_outputs_are_read(tmp_path: Path) -> None:
    page = ROOT / "docs" / "page.md"
    sample = tmp_path / "page.md"
    sample.write_text("<!-- run -->\n```bash\necho a\n```\n\n<!-- output -->\n```text\na\n```\n\n```pbtxt\nname: 'x'\n```\n")
    first, second = read(sample)
    assert (first.language, first.code, first.output) == ("bash", "echo a\n", "a\n")
    assert (second.language, second.mark) == ("pbtxt", "")
    assert page.parent.is_dir()


@pytest.mark.parametrize(
    "shown, printed, same",
    [
        ("a\nb", "a\nb\n", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("acc 0.9...", "acc 0.97", True),
        ("a", "a\nb", False),
        ("a.c", "abc", False),
    ],
)
def test_outputs_are_compared_with_room_for_what_changes(shown: str, printed: str, same: bool) -> None:
    assert fits(shown, printed) is same
