"""The code blocks of the documentation, and what comments before them ask for.

    <!-- run -->        the next block (bash or python) is run from the root of the repository, beside a server of the examples
    <!-- output -->     the next block is what that printed; a line `...` stands for any lines, `...` in a line for any text
    <!-- fragment -->   the next block (pbtxt) is a part of a configuration that is not whole

`localhost:8000`, `:8001` and `:8002` become the ports of the server. pbtxt blocks need no comment: each is read and checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

ROOT: Final = Path(__file__).parents[2]
BLOCK: Final = re.compile(
    r"^(?:<!-- (?P<mark>run|output|fragment) -->\n+)?(?P<indent> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
SHELLS: Final = {"bash", "sh", "console"}


@frozen
class Block:
    """A fenced code block."""

    file: Path
    line: int
    language: str
    code: str
    mark: str
    output: str | None = None

    @property
    def id(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def pages() -> Iterator[Path]:
    """All pages that users read."""
    yield ROOT / "README.md"
    for folder in ("docs", "examples", "deploy"):
        yield from sorted((ROOT / folder).rglob("*.md"))
    yield from sorted(file for folder in ("core", "plugins") for file in (ROOT / folder).rglob("README.md"))


@cache
def blocks() -> tuple[Block, ...]:
    return tuple(block for page in pages() if ".venv" not in page.parts for block in read(page))


def read(page: Path) -> list[Block]:
    """The blocks of a page; an output is put with the block that it follows."""
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("language")) + 1
        block = Block(page, line, match["language"], _dedented(match), match["mark"] or "")
        if block.mark != "output":
            found.append(block)
        elif found and found[-1].mark == "run" and found[-1].output is None:
            found[-1] = evolve(found[-1], output=block.code)
        else:
            raise ValueError(f"{block.id}: an output without a run before it")
    return found


def _dedented(match: re.Match[str]) -> str:
    return re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE)


def fits(shown: str, printed: str) -> bool:
    """Whether the output that a page shows is what was printed, `...` standing for anything."""
    lines = [r"(?:.*\n)*?" if line.strip() == "..." else _pattern(line) for line in shown.strip().splitlines()]
    return re.fullmatch("".join(lines), printed.strip() + "\n") is not None


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.rstrip().split("..."))) + r" *\n"
