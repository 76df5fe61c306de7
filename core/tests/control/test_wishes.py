"""Which models nobody needs any more: a pure decision."""

from __future__ import annotations

import pytest

from moorage._control.wishes import orphans, resolve
from moorage.control import ModelId


def ids(names: str) -> list[ModelId]:
    return [ModelId(name) for name in names]


@pytest.mark.parametrize(
    "going,uses,named,expected",
    [
        ("e", {"e": "ab"}, "e", "ab"),
        ("e", {"e": "ab"}, "eb", "a"),
        ("e", {"e": "ab", "f": "b"}, "ef", "a"),
        ("ef", {"e": "ab", "f": "b"}, "ef", "ab"),
        ("o", {"o": "e", "e": "ab"}, "o", "eab"),
        ("o", {"o": "e", "e": "ab"}, "oe", ""),
        ("o", {"o": "ea", "e": "ab"}, "o", "eab"),
        ("e", {"e": "e"}, "", ""),
        ("x", {"e": "ab"}, "", ""),
        ("e", {}, "", ""),
    ],
)
def test_orphans(going: str, uses: dict[str, str], named: str, expected: str) -> None:
    used = {ModelId(user): ids(parts) for user, parts in uses.items()}
    assert sorted(orphans(ids(going), used, ids(named))) == sorted(ids(expected))


def test_a_name_means_the_model_beside_the_user_or_the_only_one() -> None:
    north, south, other = ModelId("a", "north"), ModelId("a", "south"), ModelId("b", "north")
    models = [north, south, other]
    assert resolve("a", ModelId("e", "south"), models) == south
    assert resolve("a", ModelId("e", "east"), models) is None
    assert resolve("north::a", ModelId("e", "south"), models) == north
    assert resolve("b", ModelId("e", "south"), models) == other
    assert resolve("c", ModelId("e", "south"), models) is None
