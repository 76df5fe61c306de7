"""A configuration together with where each of its fields stands in the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attrs import evolve, field, frozen

from moorage.config.schema import ModelConfig
from moorage.errors import Fault


class Position(NamedTuple):
    """1-based."""

    line: int
    column: int


def item_path(path: str, key: str | int) -> str:
    """The dotted path of one item of the field at `path`: a place in a list, or a key of a map."""
    return f"{path}[{key}]" if isinstance(key, int) else f'{path}["{key}"]'


@frozen
class ParsedConfig:
    """A configuration as written. `positions` maps dotted field paths (`input[0].dims`, `parameters["k"].string_value`) to
    places in `file`.

    `given` holds the top-level fields that the user has set, whatever their value: completion must leave them alone.
    """

    config: ModelConfig
    file: str = ""
    positions: Mapping[str, Position] = field(factory=dict, eq=False)
    given: frozenset[str] = frozenset()

    def fault(self, path: str, message: str, advice: str = "") -> Fault:
        """A fault at the field `path`, placed as well as is known (the nearest enclosing field that has a position)."""
        line, column = 0, 0
        probe = path
        while probe and not line:
            if probe in self.positions:
                line, column = self.positions[probe]
            probe = probe.rpartition(".")[0] if not probe.endswith("]") else probe.rpartition("[")[0]
        return Fault(message, self.file, line, column, path, advice)

    def with_config(self, config: ModelConfig) -> ParsedConfig:
        """The same file with another configuration (completed, normalised)."""
        return evolve(self, config=config)
