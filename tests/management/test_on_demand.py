"""Mode on_demand: the first request loads a model, and the one that was not asked for the longest time makes room."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import moorage
from inputs.models import io
from moorage.errors import NotFound, Unavailable
from moorage.testing import RepositoryBuilder

CONFIG = f'backend: "python"\n{io()}'
SOURCE = """
    import numpy as np
    import triton_python_backend_utils as pb_utils

    class TritonPythonModel:
        def execute(self, requests):
            answers = []
            for request in requests:
                value = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
                answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("Y", value + {add})]))
            return answers
"""
X = np.array([1.0], np.float32)


@pytest.fixture
def repository(tmp_path: Path) -> RepositoryBuilder:
    builder = RepositoryBuilder(tmp_path / "models")
    for add, name in enumerate("abc"):
        builder.python(name, SOURCE.format(add=add), config=CONFIG)
    return builder


class Held:
    """What the model `slow` waits for."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.gate = threading.Event()

    def wait(self) -> None:
        self.entered.set()
        assert self.gate.wait(20)


@pytest.fixture
def held(repository: RepositoryBuilder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    """A model `slow` that adds 5 when its gate is opened."""
    gate = SOURCE.format(add=5).replace("answers = []", "import held; held.wait(); answers = []")
    repository.python("slow", gate, config=CONFIG)
    made = Held()
    monkeypatch.setitem(sys.modules, "held", made)
    yield made
    made.gate.set()


Start = Callable[..., moorage.Server]


@pytest.fixture
def start(repository: RepositoryBuilder) -> Iterator[Start]:
    started: list[moorage.Server] = []

    def make(**options: Any) -> moorage.Server:
        server = moorage.Server(model_repository=str(repository.path), model_control_mode="on_demand", **options)
        started.append(server.start())
        return server

    yield make
    for server in started:
        server.close()


def ask(server: moorage.Server, name: str) -> float:
    return float(server.infer(name, {"X": X})["Y"][0])


def loaded(server: moorage.Server) -> str:
    return "".join(sorted(entry.name for entry in server.index(ready=True)))


def test_least_recently_used_model_makes_room(start: Start) -> None:
    server = start(max_loaded_models=2)
    assert loaded(server) == ""
    assert server.ready()
    seen = []
    for name in "abca":
        assert ask(server, name) == 1 + "abc".index(name)
        seen.append(loaded(server))
    assert seen == ["a", "ab", "bc", "ac"]


def test_many_first_requests_share_one_load(start: Start) -> None:
    server = start()
    with ThreadPoolExecutor(8) as clients:
        assert set(clients.map(lambda _: ask(server, "b"), range(32))) == {2.0}
    (statistics,) = server.statistics("b")
    assert statistics.inference_count == 32


def test_clients_of_more_models_than_may_be_loaded_are_all_answered(start: Start) -> None:
    server = start(max_loaded_models=1)

    def client(number: int) -> list[float]:
        return [ask(server, "abc"[(number + turn) % 3]) - 1 - (number + turn) % 3 for turn in range(20)]

    with ThreadPoolExecutor(8) as clients:
        assert [answer for answers in clients.map(client, range(8)) for answer in answers] == [0.0] * 160
    assert len(loaded(server)) == 1


def test_failed_reload_leaves_a_model_that_can_make_room(start: Start, repository: RepositoryBuilder) -> None:
    server = start(max_loaded_models=1)
    assert ask(server, "a") == 1
    repository.python("a", "import no_such_module_xyz", config=CONFIG)
    with pytest.raises(moorage.errors.MoorageError, match="no_such_module_xyz"):
        server.load("a")
    assert ask(server, "a") == 1
    assert ask(server, "b") == 2
    assert loaded(server) == "b"


def test_reload_keeps_no_model_that_makes_room_meanwhile(start: Start) -> None:
    server = start(max_loaded_models=1)
    done = threading.Event()

    def reload() -> None:
        while not done.is_set():
            server.reload()

    with ThreadPoolExecutor(5) as clients:
        reloading = clients.submit(reload)
        try:
            asking = [clients.submit(lambda: [ask(server, name) for name in "abc" * 10]) for _ in range(4)]
            assert [future.result(60) for future in asking] == [[1.0, 2.0, 3.0] * 10] * 4
        finally:
            done.set()
        reloading.result(20)
    assert len(loaded(server)) == 1


def test_model_that_a_reload_has_mended_can_make_room(start: Start, repository: RepositoryBuilder) -> None:
    repository.python("a", "import no_such_module_xyz", config=CONFIG)
    server = start(max_loaded_models=1)
    with pytest.raises(Unavailable, match="no_such_module_xyz"):
        ask(server, "a")
    repository.python("a", SOURCE.format(add=7), config=CONFIG)
    server.reload()
    assert loaded(server) == "a"
    assert ask(server, "b") == 2
    assert loaded(server) == "b"


def test_requests_that_wait_for_room_are_answered_at_the_end(start: Start, held: Held) -> None:
    server = start(max_loaded_models=1)
    running = server.submit("slow", {"X": X})
    assert held.entered.wait(20)
    waiting = server.submit("a", {"X": X})
    ending = threading.Thread(target=server.close)
    ending.start()
    with pytest.raises(Unavailable, match="shutting down"):
        waiting.result(5)
    held.gate.set()
    assert float(running.result(20)["Y"][0]) == 6
    ending.join(20)


def test_model_in_use_is_not_unloaded(start: Start, held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage._control.on_demand.ROOM_SECONDS", 0.2)
    server = start(max_loaded_models=1)
    pending = server.submit("slow", {"X": X})
    assert held.entered.wait(20)
    with pytest.raises(Unavailable, match=r"--max-loaded-models"):
        ask(server, "a")
    assert loaded(server) == "slow"
    held.gate.set()
    assert float(pending.result(20)["Y"][0]) == 6
    assert ask(server, "a") == 1
    assert loaded(server) == "a"


def test_unknown_model_is_not_found(start: Start) -> None:
    with pytest.raises(NotFound, match=r"'nobody' is in no model repository"):
        ask(start(), "nobody")


def test_broken_model_says_why_and_is_tried_again_when_it_has_changed(start: Start, repository: RepositoryBuilder) -> None:
    repository.python("a", "import no_such_module_xyz", config=CONFIG)
    server = start(max_loaded_models=1)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"'a' cannot be loaded: .*no_such_module_xyz"):
            ask(server, "a")
    assert ask(server, "b") == 2
    repository.python("a", SOURCE.format(add=7), config=CONFIG)
    server.load("a")
    assert ask(server, "a") == 8


def test_broken_model_that_is_asked_for_does_not_make_the_server_unready(start: Start, repository: RepositoryBuilder) -> None:
    import tritonclient.http as client

    repository.python("a", "import no_such_module_xyz", config=CONFIG)
    server = start(load_model=("c",))
    with client.InferenceServerClient(f"127.0.0.1:{server.serve_http(0)}") as http:
        with pytest.raises(Unavailable, match="'a' cannot be loaded"):
            ask(server, "a")
        assert http.is_server_ready()


def test_clients_may_load_and_unload(start: Start) -> None:
    server = start(max_loaded_models=2, load_model=("c",))
    server.load("a")
    server.load("b")
    assert loaded(server) == "ab"
    server.unload("a")
    assert loaded(server) == "b"
    assert ask(server, "a") == 1


def test_http_request_loads_its_model(start: Start) -> None:
    import tritonclient.http as client

    server = start(max_loaded_models=1)
    with client.InferenceServerClient(f"127.0.0.1:{server.serve_http(0)}") as http:
        x = client.InferInput("X", [1], "FP32")
        x.set_data_from_numpy(X)
        for name in "ab":
            assert http.infer(name, [x]).as_numpy("Y")[0] == 1 + "abc".index(name)
        with pytest.raises(client.InferenceServerException, match="no model repository") as refused:
            http.infer("nobody", [x])
        assert refused.value.status() == "404"
