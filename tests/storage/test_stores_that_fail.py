"""Servers while their stores refuse, break off and change."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from emulators.proxy import ALWAYS, Fault, containing, of_kind
from inputs.models import VALUE, io
from moorage.errors import MoorageError
from storage.conftest import PATIENCE, News, Shop, Start, ask
from storage.test_repositories_in_stores import listed_again

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]

CONFIG = f'backend: "python"\n{io()}parameters {{ key: "isolation" value {{ string_value: "thread" }} }}\n'
POLL = {"model_control_mode": "poll", "repository_poll_secs": 0.1, "repository_settle_secs": 0.0}
EXPLICIT = {"model_control_mode": "explicit"}


def version(number: int) -> dict[str, str]:
    """A version that answers with its number, and has a file that comes in several parts."""
    return {f"m/{number}/model.py": VALUE.format(value=float(number)), f"m/{number}/weights": f"{number}" * 3_000_000}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(of_kind("get"), status=500, times=2),
        Fault(of_kind("get"), drop=True, times=2),
        Fault(of_kind("get"), cut_after=1000, times=2),
        Fault(containing("weights"), truncate_to=10, times=2),
    ],
    ids=["500", "dropped", "cut", "truncated"],
)
def test_what_passes_is_not_noticed(shop: Shop, start: Start, fault: Fault) -> None:
    shop.put({"m/config.pbtxt": CONFIG, **version(1)})
    server = start(**EXPLICIT)
    shop.proxy.faults.append(fault)
    server.load("m")
    assert ask(server) == 1


@pytest.mark.parametrize(
    "fault",
    [
        Fault(containing("weights"), status=403, times=ALWAYS),
        Fault(containing("weights"), status=404, times=ALWAYS),
        Fault(containing("weights"), damage=True, times=ALWAYS),
    ],
    ids=["refused", "gone", "damaged"],
)
def test_what_does_not_pass_fails_one_load_and_harms_nothing(shop: Shop, start: Start, fault: Fault) -> None:
    shop.put({"m/config.pbtxt": CONFIG, **version(1)})
    server = start(**EXPLICIT)
    server.load("m")
    shop.put(version(2))
    shop.proxy.faults.append(fault)
    with pytest.raises(MoorageError, match="weights"):
        server.load("m")
    assert ask(server) == 1
    shop.proxy.reset()
    server.load("m")
    assert ask(server) == 2


@pytest.mark.parametrize("status", [404, 401])
def test_a_store_that_has_gone_unloads_nothing(shop: Shop, start: Start, news: News, status: int) -> None:
    shop.put({"m/config.pbtxt": CONFIG, **version(1)})
    server = start(**POLL)
    shop.proxy.faults.append(Fault(status=status, times=ALWAYS))
    listed_again(shop.proxy, 3)
    assert ask(server) == 1
    with pytest.raises(MoorageError):
        server.load("m")
    shop.put(version(2))
    shop.proxy.reset()
    news.wait("m", 2)
    assert ask(server) == 2


def test_a_file_that_changes_again_and_again_is_never_mixed(shop: Shop, start: Start) -> None:
    """Each load brings one content as a whole, or fails."""
    shop.put({"m/config.pbtxt": CONFIG, "m/1/model.py": WHOLE})
    shop.put({"m/1/weights": "0" * 9_000_000})
    server = start(**EXPLICIT)
    over = threading.Event()

    def change() -> None:
        number = 0
        while not over.is_set():
            number = (number + 1) % 10
            shop.put({"m/1/weights": f"{number}" * 9_000_000})

    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(6):
            with suppress(MoorageError):
                server.load("m")
                assert ask(server) == 1
    finally:
        over.set()
        changing.join(PATIENCE)
    server.load("m")
    assert ask(server) == 1


WHOLE = """
import pathlib

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        folder = pathlib.Path(args["model_repository"]) / args["model_version"]
        self.contents = float(len(set((folder / "weights").read_text())))

    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", np.array([self.contents], np.float32))]) for _ in requests]
"""
