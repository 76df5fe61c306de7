"""What holds for local repositories holds for those in stores, and costs few requests."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable

import pytest
from click.testing import CliRunner

from emulators.proxy import ALWAYS, Fault, Proxy, of_kind
from inputs.models import BROKEN, VALUE, io
from moorage._cli.main import main
from storage.conftest import PATIENCE, News, Shop, Start, ask, listings

pytestmark = pytest.mark.heavy

CONFIG = f'backend: "python"\n{io()}'
POLL = {"model_control_mode": "poll", "repository_poll_secs": 0.1, "repository_settle_secs": 0.0}
EXPLICIT = {"model_control_mode": "explicit"}

SUM = """
import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = pathlib.Path(args["model_repository"]) / args["model_version"]
        files = [path for path in folder.rglob("*.bin")]
        self.total = float(len(files) * 1000 + sum(path.stat().st_size for path in files) // 1_000_000)

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([self.total], np.float32))]) for _ in requests]
"""


def value(number: float) -> str:
    return VALUE.format(value=float(number))


def versions(*numbers: int) -> dict[str, str]:
    return {"m/config.pbtxt": CONFIG, **{f"m/{number}/model.py": value(number) for number in numbers}}


def listed_again(proxy: Proxy, times: int) -> None:
    """Wait for so many more listings."""
    wanted = listings(proxy) + times
    pause = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if listings(proxy) >= wanted:
            return
        pause.wait(0.02)
    raise AssertionError(proxy.counts())


def test_fifty_small_files_and_a_large_one(shop: Shop, start: Start) -> None:
    shop.put({"m/config.pbtxt": CONFIG, "m/1/model.py": SUM, "m/1/weights/large.bin": bytes(200_000_000)})
    shop.put({f"m/1/weights/small-{number}.bin": bytes([number]) * 1000 for number in range(50)})
    assert ask(start()) == 51 * 1000 + 200


def test_polls_without_a_change_are_one_listing_each_and_load_nothing(shop: Shop, start: Start, news: News) -> None:
    for number in range(10):
        shop.put({f"m{number}/config.pbtxt": CONFIG, f"m{number}/1/model.py": value(number)})
    start(**POLL)
    listed_again(shop.proxy, 1)
    shop.proxy.reset()
    listed_again(shop.proxy, 20)
    assert set(shop.proxy.counts()) == {"list"}
    assert [change.state for change in news.changes].count("READY") == 10


def test_version_that_is_deleted_gives_way_to_the_one_before(shop: Shop, start: Start, news: News) -> None:
    shop.put(versions(1, 2))
    server = start(**POLL)
    assert ask(server) == 2
    shop.delete("m/2/model.py")
    news.wait("m", 1)
    news.wait("m", 2, "UNAVAILABLE")
    assert ask(server) == 1


def test_model_that_is_added_and_removed(shop: Shop, start: Start, news: News) -> None:
    shop.put(versions(1))
    server = start(**POLL)
    shop.put({"late/config.pbtxt": CONFIG, "late/1/model.py": value(9)})
    news.wait("late", 1)
    assert ask(server, "late") == 9
    shop.delete("late/config.pbtxt", "late/1/model.py")
    news.wait("late", 1, "UNAVAILABLE")
    assert ask(server) == 1


def test_upload_with_a_list_of_sums_is_loaded_once_and_whole(shop: Shop, start: Start, news: News) -> None:
    """The first file is there long before the last."""
    shop.put(versions(1))
    server = start(**POLL)
    files = {"model.py": SUM, "weights/a.bin": "a" * 10, "weights/b.bin": "b" * 10}
    sums = "".join(f"{hashlib.sha256(content.encode()).hexdigest()}  {path}\n" for path, content in files.items())
    shop.put({"m/2/SHA256SUMS": sums, "m/2/model.py": SUM})
    listed_again(shop.proxy, 3)
    shop.put({"m/2/weights/a.bin": "a" * 10})
    listed_again(shop.proxy, 3)
    assert ask(server) == 1
    assert news.count("m", 2, "LOADING") == 0
    shop.put({"m/2/weights/b.bin": "b" * 10})
    news.wait("m", 2)
    assert ask(server) == 2000
    assert news.count("m", 2, "LOADING") == 1


def test_upload_comes_to_rest_before_it_is_loaded(shop: Shop, start: Start, news: News) -> None:
    shop.put(versions(1))
    server = start(**{**POLL, "repository_settle_secs": 2.0})
    shop.put({"m/2/model.py": SUM})
    listed_again(shop.proxy, 2)
    shop.put({"m/2/weights/a.bin": "a"})
    news.wait("m", 2)
    assert ask(server) == 1000
    assert news.count("m", 2, "LOADING") == 1


@pytest.mark.parametrize("status", [403, 500])
def test_store_that_cannot_be_listed_changes_nothing(shop: Shop, start: Start, news: News, status: int) -> None:
    shop.put(versions(1))
    server = start(**POLL)
    told = len(news.changes)
    shop.proxy.faults.append(Fault(of_kind("list"), status=status, times=ALWAYS))
    shop.delete("m/1/model.py", "m/config.pbtxt")
    listed_again(shop.proxy, 3)
    assert len(news.changes) == told
    assert ask(server) == 1
    shop.put(versions(2))
    shop.proxy.reset()
    news.wait("m", 2)
    assert ask(server) == 2


def test_broken_model_stops_nothing_and_is_loaded_when_it_is_mended(shop: Shop, start: Start, news: News) -> None:
    shop.put({**versions(1), "bad/config.pbtxt": CONFIG, "bad/1/model.py": BROKEN})
    server = start(**POLL, exit_on_error=False)
    shop.put({"bad/1/model.py": value(5)})
    news.wait("bad", 1)
    assert (ask(server), ask(server, "bad")) == (1, 5)


def test_load_takes_what_is_there_now(shop: Shop, start: Start) -> None:
    shop.put(versions(1))
    server = start(**EXPLICIT)
    server.load("m")
    assert ask(server) == 1
    shop.put({"m/1/model.py": value(11)})
    server.load("m")
    assert ask(server) == 11
    shop.put({"m/2/model.py": value(2)})
    server.load("m")
    assert ask(server) == 2
    server.load("m", config={"backend": "python", "version_policy": {"specific": {"versions": [1]}}, **tensors()})
    assert ask(server) == 11
    server.unload("m")
    assert [(entry.name, entry.state) for entry in server.index()] == [("m", "UNAVAILABLE")] * 2


def tensors() -> dict[str, list[dict[str, object]]]:
    return {
        "input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [-1]}],
    }


def test_files_of_a_request_stand_in_for_the_store(shop: Shop, start: Start) -> None:
    shop.put(versions(1))
    server = start(**EXPLICIT)
    server.load("m", config={"backend": "python", **tensors()}, files={"1/model.py": value(33).encode()})
    assert ask(server) == 33
    server.load("m")
    assert ask(server) == 1


def test_check_and_plan(shop: Shop, run: Callable[..., tuple[int, str]]) -> None:
    shop.put({**versions(1), "bad/config.pbtxt": f"{CONFIG} max_batchsize: 4", "bad/1/model.py": value(1)})
    code, output = run("check", "--json", shop.url)
    (fault,) = json.loads(output[output.index("[") :])
    assert (code, fault["model"], fault["fault"]["field"]) == (1, "bad", "max_batchsize")
    assert fault["fault"]["file"] == f"{shop.url}/bad/config.pbtxt"
    code, output = run("plan", "--json", shop.url)
    assert [(step["model"], step["action"]) for step in json.loads(output)] == [("bad", "refuse"), ("m", "load")]


@pytest.fixture
def run() -> Callable[..., tuple[int, str]]:
    def moorage(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, list(arguments))
        return done.exit_code, done.stdout

    return moorage


def test_reloads_lose_no_request(shop: Shop, start: Start, news: News) -> None:
    shop.put(versions(1))
    server = start(**EXPLICIT, load_model=("m",))
    over = threading.Event()
    answers: list[float] = []
    failures: list[Exception] = []

    def client() -> None:
        while not over.is_set():
            try:
                answers.append(ask(server))
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=client) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2, 12):
        shop.put({f"m/{number}/model.py": value(number)})
        server.load("m")
    over.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    assert set(answers) <= set(range(1, 12))
    assert ask(server) == 11
