"""What a request finds under a name, and that nothing is closed while it is held, whatever the threads do."""

from __future__ import annotations

import threading

import pytest

from moorage._lifecycle.serving import ServingMap, Slot
from moorage.control import ModelId
from moorage.errors import MoorageError, NotFound, RequestError, Unavailable
from moorage.types import LATEST

M = ModelId("m")


@pytest.fixture
def serving() -> ServingMap[str]:
    made: ServingMap[str] = ServingMap()
    made.publish(M, {1: Slot("one"), 10: Slot("ten"), 9: Slot("nine")})
    made.describe(M, {2: "unloaded", 3: "loading"})
    return made


@pytest.mark.parametrize("version,expected", [(LATEST, "ten"), (1, "one"), (9, "nine")])
def test_versions_are_found(serving: ServingMap[str], version: int, expected: str) -> None:
    assert serving.get("m", version) == expected
    with serving.acquire("m", version) as handle:
        assert handle.servable == expected


@pytest.mark.parametrize(
    "name,version,kind,text",
    [
        ("x", LATEST, NotFound, "model 'x' is not loaded"),
        ("x", 1, NotFound, "model 'x' is not loaded"),
        ("m", 4, NotFound, "model 'm' has no version 4"),
        ("m", 2, Unavailable, "model 'm' version 2 does not serve requests now: unloaded"),
        ("m", 3, Unavailable, "model 'm' version 3 does not serve requests now: loading"),
        ("a::m", LATEST, NotFound, "model 'a::m' is not loaded"),
    ],
)
def test_what_is_not_there_is_told_apart(
    serving: ServingMap[str], name: str, version: int, kind: type[MoorageError], text: str
) -> None:
    for look in (serving.acquire, serving.get):
        with pytest.raises(kind) as caught:
            look(name, version)
        assert text in caught.value.message


def test_a_model_without_a_serving_version_is_not_found_unless_the_version_is_named(serving: ServingMap[str]) -> None:
    serving.publish(M, {})
    serving.describe(M, {1: "unloaded", 2: "loading"})
    with pytest.raises(NotFound, match=r"no version that serves requests .version 1: unloaded; version 2: loading."):
        serving.acquire("m")
    with pytest.raises(Unavailable, match="'m' version 1"):
        serving.acquire("m", 1)
    with pytest.raises(NotFound, match="no version 7"):
        serving.acquire("m", 7)
    with pytest.raises(NotFound):
        serving.versions("m")
    assert serving.models() == {}


def test_listings_are_in_order(serving: ServingMap[str]) -> None:
    assert list(serving.versions("m").items()) == [(1, "one"), (9, "nine"), (10, "ten")]
    assert serving.models() == {M: {1: "one", 9: "nine", 10: "ten"}}


def test_namespaces() -> None:
    serving: ServingMap[str] = ServingMap()
    north, south = ModelId("m", "s3://north"), ModelId("m", "s3://[::1]:9000/south")
    serving.publish(north, {1: Slot("n")})
    assert serving.get("m") == "n"
    serving.publish(south, {2: Slot("s")})
    with pytest.raises(RequestError) as caught:
        serving.acquire("m")
    assert "served from 's3://[::1]:9000/south', 's3://north'" in caught.value.message
    assert f"ask for '{max(north, south)}'" in caught.value.message
    assert serving.get(str(north)) == "n"
    assert serving.get(str(south), 2) == "s"
    serving.describe(south, {1: "unloaded"})
    with pytest.raises(Unavailable, match="version 1"):
        serving.acquire(str(south), 1)
    serving.publish(north, {})
    assert serving.get("m") == "s"
    with pytest.raises(NotFound, match="north::m"):
        serving.acquire(str(north))


def test_a_reader_of_the_old_map_moves_on_to_the_new(serving: ServingMap[str]) -> None:
    old = serving._table.routes["m"][10]
    with pytest.raises(NotFound, match="'m'"):
        _acquire_after(serving, old, {})
    assert _acquire_after(serving, Slot("x"), {11: Slot("eleven")}) == "eleven"


def _acquire_after(serving: ServingMap[str], stale: Slot[str], slots: dict[int, Slot[str]]) -> str:
    """Acquire with a reader that has looked into the map just before it was replaced."""
    serving.publish(M, slots)
    stale.close(lambda: None)
    fresh = serving._table.routes

    class Once(dict[str, dict[int, Slot[str]]]):
        def get(self, name: str, default: object = None) -> dict[int, Slot[str]]:
            serving._table = type(serving._table)(fresh, serving._table.models)
            return {LATEST: stale}

    serving._table = type(serving._table)(Once(), serving._table.models)
    return serving.acquire("m").servable


def test_the_last_holder_reports_once_closed() -> None:
    slot = Slot("x")
    serving: ServingMap[str] = ServingMap()
    serving.publish(M, {1: slot})
    first, second = serving.acquire("m"), serving.acquire("m")
    first.release()
    reports: list[int] = []
    third = serving.acquire("m")
    serving.publish(M, {})
    slot.close(lambda: reports.append(len(slot.held)))
    second.release()
    second.release()
    assert reports == []
    third.release()
    assert reports == [0]


def test_a_slot_that_nobody_holds_reports_at_once() -> None:
    slot = Slot("x")
    closed: list[bool] = []
    slot.close(lambda: closed.append(slot.closed))
    assert closed == [True], "it must refuse requests before it is found empty"


class Counted:
    """Fails loudly when it is used after it was closed."""

    def __init__(self) -> None:
        self.open = True


@pytest.mark.usefixtures("busy_threads")
def test_no_version_is_closed_under_a_request_and_all_are_closed() -> None:
    serving: ServingMap[Counted] = ServingMap()
    current = Slot(Counted())
    serving.publish(M, {1: current})
    stop = threading.Event()
    wrong: list[str] = []
    served = [0] * 6

    def requests(number: int) -> None:
        while not stop.is_set():
            try:
                handle = serving.acquire("m")
            except MoorageError as error:
                wrong.append(f"refused: {error}")
                return
            for _ in range(number):
                if not handle.servable.open:
                    wrong.append("closed while it was held")
            handle.release()
            served[number] += 1

    threads = [threading.Thread(target=requests, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for turn in range(300):
        old, current = current, Slot(Counted())
        serving.publish(M, {turn + 2: current})
        empty = threading.Event()

        def close(slot: Slot[Counted] = old, empty: threading.Event = empty) -> None:
            slot.servable.open = False
            empty.set()

        old.close(close)
        assert empty.wait(10), "the last holder did not report"
    stop.set()
    for thread in threads:
        thread.join(10)
    assert wrong == []
    assert all(served)
    assert not current.held
