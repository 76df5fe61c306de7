"""Which versions a policy picks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage._repository.version_policy import missing, select
from moorage.config.schema import All, Latest, Specific, VersionPolicy

VERSIONS = st.frozensets(st.integers(0, 2**63 - 1), max_size=12)


@pytest.mark.parametrize(
    "choice, available, picked",
    [
        (None, (10, 2, 9), (2, 9, 10)),
        (None, (), ()),
        (Latest(2), (1, 3, 12), (3, 12)),
        (Latest(9), (1, 3), (1, 3)),
        (Latest(0), (1, 3), ()),
        (All(), (20, 1, 3), (1, 3, 20)),
        (Specific((1, 3)), (1, 2, 3, 4), (1, 3)),
        (Specific((8, 1)), (1,), (1,)),
        (Specific(()), (1,), ()),
    ],
)
def test_table(choice: Latest | All | Specific | None, available: tuple[int, ...], picked: tuple[int, ...]) -> None:
    assert select(VersionPolicy(choice), available) == picked


def test_no_policy_is_the_latest() -> None:
    assert select(None, (1, 2)) == (2,)


def test_missing() -> None:
    assert missing(VersionPolicy(Specific((8, 1, 7))), (1, 2)) == (7, 8)
    assert missing(VersionPolicy(Latest(3)), (1,)) == missing(None, (1,)) == ()


@given(VERSIONS, st.integers(0, 15))
def test_latest_picks_the_greatest(available: frozenset[int], count: int) -> None:
    picked = select(VersionPolicy(Latest(count)), available)
    rest = available - set(picked)
    assert len(picked) == min(count, len(available))
    assert list(picked) == sorted(picked)
    assert all(low < high for low in rest for high in picked)


@given(VERSIONS, VERSIONS)
def test_specific_is_an_intersection(available: frozenset[int], wanted: frozenset[int]) -> None:
    policy = VersionPolicy(Specific(tuple(wanted)))
    assert set(select(policy, available)) == available & wanted
    assert set(missing(policy, available)) == wanted - available


@given(VERSIONS)
def test_all_is_the_widest(available: frozenset[int]) -> None:
    assert select(VersionPolicy(All()), available) == tuple(sorted(available))
