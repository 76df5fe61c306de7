"""Loads and unloads that clients ask for: what they answer, and when."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from moorage._control.none import NoneMode
from moorage._repository import RepositorySnapshot
from moorage.control import LoadOptions, ModelId
from moorage.errors import InvalidArgument, NotFound, StorageError, Unavailable

if TYPE_CHECKING:
    from core.tests.control.explicit.conftest import World


async def test_a_load_answers_when_the_model_serves(world: World) -> None:
    world.model("m")
    world.going_on.clear()
    load = asyncio.create_task(world.load("m"))
    await world.until(lambda: world.index() == [("m", 1, "LOADING")])
    assert not load.done()
    world.going_on.set()
    await load
    assert world.served() == {"m": [1]}


async def test_an_unload_answers_when_the_model_is_drained_and_closed(world: World) -> None:
    world.model("m")
    await world.load("m")
    handle = world.serving.acquire("m")
    world.closing.clear()
    unload = asyncio.create_task(world.unload("m"))
    await world.until(lambda: not world.served())
    assert world.index() == [("m", 1, "UNLOADING")]
    handle.release()
    await asyncio.sleep(0.01)
    assert not unload.done()
    world.closing.set()
    await unload
    assert world.loaded[0].closed
    assert world.index() == [("m", 1, "UNAVAILABLE")]


async def test_loads_at_the_same_time_share_one_result(world: World) -> None:
    world.model("m")
    world.going_on.clear()
    loads = [asyncio.create_task(world.load("m")) for _ in range(5)]
    await world.until(lambda: bool(world.index()))
    world.going_on.set()
    await asyncio.gather(*loads)
    assert world.loads == ["m/1"]


async def test_loads_at_the_same_time_share_one_failure(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.model("m", content="broken: no such layer")
    world.going_on.clear()
    want_all, wants = world.manager.want_all, itertools.count(1)

    async def counted(specs: Any, **more: Any) -> Any:
        if next(wants) == 3:
            world.going_on.set()
        return await want_all(specs, **more)

    monkeypatch.setattr(world.manager, "want_all", counted)
    errors = await asyncio.gather(*(world.refused("m") for _ in range(3)))
    assert all("ValueError: broken: no such layer" in error for error in errors)
    assert world.loads == ["m/1"]


async def test_a_look_that_comes_back_late_does_not_undo_a_newer_load(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first load has read the old configuration when the second has already been carried out with the new one."""
    world.model("m", 1, 2)
    read, old_is_read = world.control._reading, asyncio.Event()
    held = asyncio.Event()

    async def reading(snapshot: RepositorySnapshot, model: ModelId, options: LoadOptions) -> object:
        result = await read(snapshot, model, options)
        if not old_is_read.is_set():
            old_is_read.set()
            await held.wait()
        return result

    monkeypatch.setattr(world.control, "_reading", reading)
    first = asyncio.create_task(world.load("m"))
    await old_is_read.wait()
    world.model("m", 1, 2, config=world.ALL_VERSIONS)
    await world.load("m")
    held.set()
    await first
    assert world.served() == {"m": [1, 2]}


async def test_a_failed_reload_leaves_the_old_one_serving(world: World) -> None:
    world.model("m")
    await world.load("m")
    world.model("m", content="broken: new layer")
    assert "broken: new layer" in await world.refused("m")
    assert world.served() == {"m": [1]}
    world.model("m", config="{")
    assert "config.json" in await world.refused("m")
    assert world.served() == {"m": [1]}
    assert world.serving.get("m").content == ""


async def test_nothing_is_loaded_again_when_nothing_has_changed(world: World) -> None:
    world.model("m")
    await world.load("m")
    await world.load("m")
    assert world.loads == ["m/1"]
    await world.load("m", force=True)
    assert world.loads == ["m/1", "m/1"]


async def test_a_forced_load_leaves_the_old_one_serving_until_the_new_one_does(world: World) -> None:
    world.model("m")
    await world.load("m")
    world.going_on.clear()
    load = asyncio.create_task(world.load("m", force=True))
    await asyncio.sleep(0.01)
    old = world.serving.get("m")
    assert world.index() == [("m", 1, "READY")]
    world.going_on.set()
    await load
    assert world.serving.get("m") is not old


async def test_names_that_are_nowhere(world: World) -> None:
    with pytest.raises(NotFound, match="'ghost' is in no model repository"):
        await world.load("ghost")
    await world.unload("ghost")
    assert not world.control.wanted()


async def test_nothing_is_kept_of_a_model_that_went_before_it_was_read(world: World) -> None:
    await world.control.scan()
    (outcome,) = await world.control.want([ModelId("gone")])
    assert outcome.error is not None
    assert not world.control.wanted()
    assert not world.manager.failed()


async def test_a_repository_that_cannot_be_read_is_not_taken_for_empty(world: World) -> None:
    world.model("m")
    await world.load("m")
    shutil.rmtree(world.root / "r")
    with pytest.raises(StorageError):
        await world.load("other")
    assert world.served() == {"m": [1]}


async def test_a_model_whose_folder_is_gone_serves_on_and_can_be_unloaded(world: World) -> None:
    world.model("m")
    world.model("other")
    await world.load("m")
    shutil.rmtree(world.root / "r" / "m")
    with pytest.raises(NotFound):
        await world.load("m")
    assert world.served() == {"m": [1]}
    await world.unload("m")
    assert not world.served()


async def test_a_failed_model_that_is_unloaded_does_not_count_any_more(world: World) -> None:
    world.model("bad-file", content="broken")
    world.model("bad-config", config="{")
    for name in ("bad-file", "bad-config"):
        await world.refused(name)
    assert world.manager.failed() == {ModelId("bad-file"), ModelId("bad-config")}
    assert world.control.wanted() == {ModelId("bad-file"), ModelId("bad-config")}
    for name in ("bad-file", "bad-config"):
        await world.unload(name)
    assert not world.manager.failed()


# Single versions


async def test_one_version_of_several_is_unloaded(world: World) -> None:
    world.model("m", 1, 2, 3, config=world.ALL_VERSIONS)
    await world.load("m")
    await world.unload("m", 2)
    assert world.served() == {"m": [1, 3]}
    assert world.index() == [("m", 1, "READY"), ("m", 2, "UNAVAILABLE"), ("m", 3, "READY")]
    assert world.serving.get("m").spec.version == 3
    with pytest.raises(Unavailable, match="version 2"):
        world.serving.acquire("m", 2)
    assert world.loads == ["m/1", "m/2", "m/3"]


async def test_an_unload_of_a_version_waits_until_it_is_drained(world: World) -> None:
    world.model("m", 1, 2, config=world.ALL_VERSIONS)
    await world.load("m")
    handle = world.serving.acquire("m", 1)
    unload = asyncio.create_task(world.unload("m", 1))
    await world.until(lambda: len(world.served()["m"]) == 1)
    await asyncio.sleep(0.01)
    assert not unload.done()
    handle.release()
    await unload
    assert [loaded.closed for loaded in sorted(world.loaded, key=lambda loaded: loaded.spec.version)] == [True, False]


async def test_an_unload_of_a_version_looks_at_no_file(world: World) -> None:
    world.model("m", 1, 2, config=world.ALL_VERSIONS)
    await world.load("m")
    world.model("m", 1, 2, content="broken", config="{")
    await world.unload("m", 2)
    assert world.served() == {"m": [1]}


async def test_the_last_version_takes_the_model_along(world: World) -> None:
    world.model("m", 1, 2, config=world.ALL_VERSIONS)
    await world.load("m")
    await world.unload("m", 1)
    await world.unload("m", 7)
    assert world.served() == {"m": [2]}
    await world.unload("m", 2)
    assert not world.served()
    assert not world.control.wanted()


async def test_versions_are_loaded_beside_those_that_serve(world: World) -> None:
    world.model("m", 1, 2, 3)
    await world.load("m", versions=frozenset({1}))
    assert world.served() == {"m": [1]}
    world.model("m", 1, content="broken")
    await world.load("m", versions=frozenset({2, 3}))
    assert world.served() == {"m": [1, 2, 3]}
    assert sorted(world.loads) == ["m/1", "m/2", "m/3"]
    await world.load("m")
    assert world.served() == {"m": [3]}


async def test_a_version_that_fails_leaves_the_others_alone(world: World) -> None:
    world.model("m", 1, 2)
    await world.load("m")
    world.model("m", 1, content="broken")
    assert "broken" in await world.refused("m", versions=frozenset({1}))
    assert world.served() == {"m": [2]}


async def test_versions_that_are_not_there_are_named(world: World) -> None:
    world.model("m", 1, 3)
    assert "no version 2, 4" in await world.refused("m", versions=frozenset({1, 2, 4}))


async def test_forcing_one_version_leaves_the_others_alone(world: World) -> None:
    world.model("m", 1, 2, config=world.ALL_VERSIONS)
    await world.load("m")
    await world.load("m", versions=frozenset({2}), force=True)
    assert sorted(world.loads) == ["m/1", "m/2", "m/2"]


# Overrides


async def test_a_given_config_holds_until_the_next_plain_load(world: World) -> None:
    world.model("m", 1, 2)
    await world.load("m", config=world.ALL_VERSIONS)
    assert world.served() == {"m": [1, 2]}
    await world.load("m")
    assert world.served() == {"m": [2]}
    await world.load("m")
    assert sorted(world.loads) == ["m/1", "m/2", "m/2"]


async def test_given_files_hold_until_the_next_plain_load(world: World) -> None:
    world.model("m", 1, content="repository")
    await world.load("m", config=world.CONFIG, files={"2/model": b"request"})
    assert world.served() == {"m": [2]}
    assert world.serving.get("m").content == "request"
    assert world.control.made_of_requests() == {ModelId("m")}
    await world.load("m")
    assert world.served() == {"m": [1]}
    assert not world.control.made_of_requests()


async def test_a_model_of_given_files_alone(world: World) -> None:
    await world.load("ghost", config=world.CONFIG, files={"1/model": b"x"})
    assert world.control.made_of_requests() == {ModelId("ghost")}
    with pytest.raises(NotFound):
        await world.load("ghost")
    assert world.served() == {"ghost": [1]}
    await world.unload("ghost")
    assert not world.control.made_of_requests()


async def test_given_files_that_do_not_load_are_remembered_until_the_unload(world: World) -> None:
    assert "'config'" in await world.refused("ghost", files={"1/model": b"x"})
    assert world.manager.failed() == {ModelId("ghost")}
    await world.unload("ghost")
    assert not world.manager.failed()
    assert not world.control.wanted()


# The start, and other modes


@pytest.mark.parametrize("names,served", [(["a"], ["a"]), (["*"], ["a", "b"]), (["b", "a", "b"], ["a", "b"])])
async def test_initial_models(make_world: Callable[..., World], names: list[str], served: list[str]) -> None:
    world = make_world(initial=names)
    for name in ("a", "b"):
        world.model(name)
    outcomes = await world.explicit.start()
    assert not any(outcome.error for outcome in outcomes)
    assert list(world.served()) == served


async def test_an_initial_model_that_is_missing_is_told(make_world: Callable[..., World]) -> None:
    world = make_world(initial=["a", "ghost"])
    world.model("a")
    outcomes = {outcome.id.name: outcome.error for outcome in await world.explicit.start()}
    assert outcomes["a"] is None
    assert outcomes["ghost"] is not None
    assert world.served() == {"a": [1]}


async def test_all_and_a_name_contradict_each_other(make_world: Callable[..., World]) -> None:
    with pytest.raises(InvalidArgument, match="--load-model"):
        await make_world(initial=["*", "a"]).explicit.start()


async def test_mode_none_takes_no_requests(world: World) -> None:
    mode = NoneMode(world.control)
    for name in ("a", "b"):
        world.model(name)
    await mode.start()
    with pytest.raises(Unavailable, match=r"NONE.*--model-control-mode=explicit"):
        await mode.load("a", LoadOptions())
    with pytest.raises(Unavailable, match=r"NONE.*--model-control-mode=explicit"):
        await mode.unload("a", dependents=False)
    assert list(world.served()) == ["a", "b"]


# Namespaces


async def test_namespaces(make_world: Callable[..., World]) -> None:
    world = make_world("north", "south", namespacing=True)
    world.model("m", 1, repository="north")
    world.model("m", 2, repository="south")
    north, south = f"{world.root}/north::m", f"{world.root}/south::m"
    await world.load(south)
    assert world.served() == {south: [2]}
    await world.load("m")
    assert world.served() == {north: [1], south: [2]}
    await world.unload(north)
    assert world.served() == {south: [2]}
    await world.unload("m")
    assert not world.served()
