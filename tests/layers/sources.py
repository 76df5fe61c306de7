"""The Python sources of the distributions, as the rules of the house look at them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import frozen

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Source:
    """One module of a distribution."""

    distribution: Path
    file: Path

    @property
    def name(self) -> str:
        """The dotted name, `moorage.config.schema`."""
        parts = self.file.relative_to(self.distribution / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.file)

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def imports(self, *, at_import_time: bool = False) -> Iterator[str]:
        """The modules that are imported, anywhere or only when this module is."""
        nodes = _run_at_import(self.tree.body) if at_import_time else ast.walk(self.tree)
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                yield node.module
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"), str(file))


def _run_at_import(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes but those inside functions and `if TYPE_CHECKING`."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function | ast.Lambda) or _is_type_checking(node):
            continue
        yield node
        waiting.extend(ast.iter_child_nodes(node))


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def distributions() -> tuple[Path, ...]:
    """The folders of the packages: the core first, then the plugins."""
    plugins = sorted(file.parent for file in (ROOT / "plugins").rglob("pyproject.toml") if ".venv" not in file.parts)
    return (ROOT / "core", *plugins)


@cache
def sources() -> tuple[Source, ...]:
    return tuple(Source(one, file) for one in distributions() for file in sorted((one / "src").rglob("*.py")))


def core_sources() -> list[Source]:
    return [source for source in sources() if source.distribution == ROOT / "core"]


def plugin_sources() -> list[Source]:
    return [source for source in sources() if source.distribution != ROOT / "core"]
