"""When the server says that it is ready."""

from __future__ import annotations

import pytest

from moorage._admin.readiness import Readiness, ReadinessPolicy, Standing
from moorage.control import ModelId

A, B, C = ModelId("a"), ModelId("b"), ModelId("c", "north")


@pytest.mark.parametrize(
    "policy,standing,awaited",
    [
        ("all", Standing([A, B]), []),
        ("all", Standing([]), []),
        ("all", Standing([A], coming=[B]), ["b"]),
        ("all", Standing([A], failed=[C], coming=[B]), ["b", "north::c"]),
        ("initial", Standing([A], failed=[B], coming=[C]), []),
        ("initial", Standing([], failed=[A]), ["a"]),
        ("initial", Standing([], coming=[A]), ["a"]),
        ("initial", Standing([]), []),
        ("none", Standing([], failed=[A], coming=[B]), []),
    ],
)
def test_policies(policy: str, standing: Standing, awaited: list[str]) -> None:
    assert Readiness(ReadinessPolicy(policy)).awaited(standing, initial=[A]) == awaited


@pytest.mark.parametrize("policy", list(ReadinessPolicy))
@pytest.mark.parametrize(
    "required,awaited",
    [((), []), (("a",), []), (("c",), []), (("north::c",), []), (("b", "a"), ["b"]), (("south::c", "b"), ["b", "south::c"])],
)
def test_required_models_must_serve(policy: ReadinessPolicy, required: tuple[str, ...], awaited: list[str]) -> None:
    assert Readiness(policy, required).awaited(Standing([A, C])) == awaited
