"""Models that use others: what comes with them, what goes with them, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from moorage.control import ModelId

if TYPE_CHECKING:
    from core.tests.control.explicit.conftest import World


@pytest.fixture
def parts(world: World) -> World:
    for name in ("a", "b"):
        world.model(name)
    world.ensemble("e", "a", "b")
    return world


async def test_an_ensemble_brings_its_parts(parts: World) -> None:
    await parts.load("e")
    assert list(parts.served()) == ["a", "b", "e"]
    assert parts.loads[-1] == "e/1"


async def test_parts_of_parts_come_too(parts: World) -> None:
    parts.ensemble("outer", "e", "a")
    await parts.load("outer")
    assert list(parts.served()) == ["a", "b", "e", "outer"]


async def test_a_part_that_serves_is_left_alone(parts: World) -> None:
    await parts.load("a", config=parts.ALL_VERSIONS)
    parts.model("a", content="broken")
    await parts.load("e", force=True)
    assert parts.loads.count("a/1") == 1


async def test_a_part_that_failed_is_tried_again(parts: World) -> None:
    parts.model("a", content="broken: no weights")
    assert "'a' failed to load (model 'a' version 1: ValueError: broken: no weights)" in await parts.refused("e")
    parts.model("a")
    await parts.load("e")
    assert list(parts.served()) == ["a", "b", "e"]


async def test_a_part_that_cannot_be_read_is_named_with_the_reason(parts: World) -> None:
    parts.model("a", config="{")
    error = await parts.refused("e")
    assert "step 'a' failed to load" in error
    assert "config.json" in error


async def test_a_missing_part_is_named(parts: World) -> None:
    parts.ensemble("f", "a", "missing")
    assert "model 'f' cannot be loaded: its step 'missing' is not loaded" in await parts.refused("f")
    assert list(parts.served()) == ["a"]


@pytest.mark.parametrize("there", [True, False])
async def test_a_part_that_is_a_path_is_refused_without_a_look_at_it(parts: World, there: bool) -> None:
    if there:
        parts.write({"secret/config.json": parts.CONFIG, "secret/1/model": ""})
    parts.ensemble("f", "a", "../secret")
    error = await parts.refused("f")
    assert "names the model '../secret', which is a path (write the name of a model of the repository)" in error


async def test_a_missing_part_that_comes_later_brings_the_ensemble_up(parts: World) -> None:
    parts.ensemble("f", "a", "late")
    await parts.refused("f")
    parts.model("late")
    await parts.load("late")
    assert list(parts.served()) == ["a", "f", "late"]


async def test_a_circle_is_named(parts: World) -> None:
    parts.ensemble("x", "a", "y")
    parts.ensemble("y", "x")
    assert "'x' -> 'y' -> 'x'" in await parts.refused("x")
    parts.ensemble("self", "self")
    assert "'self' is the ensemble itself" in await parts.refused("self")


async def test_an_unload_of_the_ensemble_leaves_its_parts(parts: World) -> None:
    await parts.load("e")
    await parts.unload("e")
    assert list(parts.served()) == ["a", "b"]


async def test_an_unload_with_dependents_takes_the_parts_along(parts: World) -> None:
    await parts.load("e")
    await parts.unload("e", dependents=True)
    assert not parts.served()
    assert not parts.control.wanted()


async def test_what_was_loaded_by_name_stays(parts: World) -> None:
    await parts.load("e")
    await parts.load("b")
    await parts.unload("e", dependents=True)
    assert list(parts.served()) == ["b"]


async def test_what_another_one_uses_stays(parts: World) -> None:
    parts.ensemble("f", "b")
    await parts.load("e")
    await parts.load("f")
    await parts.unload("e", dependents=True)
    assert list(parts.served()) == ["b", "f"]
    await parts.unload("f", dependents=True)
    assert not parts.served()


async def test_parts_of_parts_go_too(parts: World) -> None:
    parts.ensemble("outer", "e", "a")
    await parts.load("outer")
    await parts.unload("outer", dependents=True)
    assert not parts.served()


async def test_an_unloaded_part_takes_the_ensemble_down_and_its_next_load_brings_it_back(parts: World) -> None:
    await parts.load("e")
    await parts.unload("a")
    assert list(parts.served()) == ["b"]
    assert not parts.manager.failed()
    await parts.load("a")
    assert list(parts.served()) == ["a", "b", "e"]


async def test_a_load_of_the_ensemble_brings_an_unloaded_part_back(parts: World) -> None:
    await parts.load("e")
    await parts.unload("a")
    await parts.load("e")
    assert list(parts.served()) == ["a", "b", "e"]


async def test_a_part_loaded_again_does_not_make_a_model_fail_whose_other_part_was_unloaded(parts: World) -> None:
    await parts.load("e")
    await parts.unload("a")
    await parts.load("b", force=True)
    assert not parts.manager.failed()
    await parts.load("a")
    assert list(parts.served()) == ["a", "b", "e"]


async def test_a_reloaded_part_leaves_the_ensemble_serving(parts: World) -> None:
    await parts.load("e")
    ensemble = parts.serving.get("e")
    parts.model("b", 2)
    await parts.load("b")
    assert parts.served() == {"a": [1], "b": [2], "e": [1]}
    assert parts.serving.get("e") is ensemble


async def test_parts_in_the_namespace_of_the_ensemble_come_first(make_world: Callable[..., World]) -> None:
    world = make_world("north", "south", namespacing=True)
    for repository in ("north", "south"):
        world.model("a", repository=repository)
    world.write({"south/e/config.json": "", "south/e/1/model": ""})
    world.ensemble("e", "a")
    (world.root / "r/e/config.json").replace(world.root / "south/e/config.json")
    await world.load("e")
    south = f"{world.root}/south"
    assert set(world.serving.models()) == {ModelId("a", south), ModelId("e", south)}
