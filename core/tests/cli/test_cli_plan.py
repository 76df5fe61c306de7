"""`moorage plan`: what a start, or the next poll of a server, would do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result

from moorage._app.difference import differences
from moorage.config import normalise, parse_text, to_json
from moorage.config.schema import DynamicBatching, ModelConfig, ModelInput
from moorage.types import DataType

Moorage = Callable[..., Result]

CONFIG = """
backend: "python"
input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]
"""


def completed(text: str) -> ModelConfig:
    """A configuration as a server shows it."""
    return normalise(parse_text(text, model="m").config)


class FakeServer(HTTPServer):
    """Answers as a server does that serves these models."""

    def __init__(self, models: Mapping[str, Mapping[int, ModelConfig]]) -> None:
        self.models = models
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: FakeServer

    def do_GET(self) -> None:
        _, _, _, name, _, version, _ = self.path.split("/")
        self._send(to_json(self.server.models[name][int(version)]))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        models = self.server.models.items()
        self._send([{"name": name, "version": str(v), "state": "READY"} for name, versions in models for v in versions])

    def log_message(self, *_: object) -> None:
        return

    def _send(self, content: object) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def serving() -> Iterator[Callable[[Mapping[str, Mapping[int, ModelConfig]]], str]]:
    running: list[tuple[FakeServer, Thread]] = []

    def serve(models: Mapping[str, Mapping[int, ModelConfig]]) -> str:
        server = FakeServer(models)
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        running.append((server, thread))
        return server.url

    yield serve
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


def put(root: Path, name: str, *versions: int, config: str = CONFIG) -> None:
    for version in versions:
        (root / name / str(version)).mkdir(parents=True, exist_ok=True)
        (root / name / str(version) / "model.py").touch()
    (root / name / "config.pbtxt").write_text(config)


def steps(done: Result) -> list[tuple[Any, ...]]:
    return [(step["model"], step["version"], step["action"]) for step in json.loads(done.stdout)]


def test_a_start_from_nothing(moorage: Moorage, tmp_path: Path) -> None:
    put(tmp_path, "all", 1, 2, config=f"{CONFIG} version_policy: {{ all {{}} }}")
    put(tmp_path, "last", 1, 2)
    put(tmp_path, "wrong", 1, config='backend: "python" inptu []')
    (tmp_path / "stray").mkdir()
    done = moorage("plan", str(tmp_path), "--json")
    assert steps(done) == [
        ("all", 1, "load"),
        ("all", 2, "load"),
        ("last", 2, "load"),
        ("stray", None, "refuse"),
        ("wrong", None, "refuse"),
    ]
    assert done.exit_code == 1
    table = moorage("plan", str(tmp_path)).stdout
    assert "inptu" in table
    assert "this folder is no model" in table


def test_the_next_poll_of_a_server(moorage: Moorage, tmp_path: Path, serving: Callable[..., str]) -> None:
    put(tmp_path, "same", 1)
    put(tmp_path, "more", 1, config=f"{CONFIG} instance_group [ {{ count: 3 kind: KIND_CPU }} ]")
    put(tmp_path, "other", 1, config=f'{CONFIG} parameters {{ key: "a" value: {{ string_value: "b" }} }}')
    put(tmp_path, "newer", 1, 2)
    put(tmp_path, "new", 1)
    put(tmp_path, "broken", 1, config="nonsense")
    names = ("same", "more", "other", "newer", "gone", "broken")
    served = {name: {1: completed(f'name: "{name}" {CONFIG}')} for name in names}
    done = moorage("plan", str(tmp_path), "--server", serving(served), "--json")
    assert steps(done) == [
        ("broken", None, "refuse"),
        ("broken", 1, "keep"),
        ("more", 1, "update"),
        ("new", 1, "load"),
        ("newer", 1, "unload"),
        ("newer", 2, "load"),
        ("other", 1, "replace"),
        ("same", 1, "keep"),
        ("gone", 1, "unload"),
    ]
    reasons = {step["model"]: step["reason"] for step in json.loads(done.stdout)}
    assert reasons["other"] == "the configuration differs: parameters"
    assert reasons["more"] == "only instance_group differs"


def test_of_an_unreadable_repository_nothing_is_concluded(
    moorage: Moorage, tmp_path: Path, serving: Callable[..., str]
) -> None:
    done = moorage("plan", str(tmp_path / "nowhere"), "--server", serving({"m": {1: completed(CONFIG)}}), "--json")
    assert steps(done) == [("", None, "refuse"), ("m", 1, "keep")]


@pytest.mark.parametrize("server", ["http://127.0.0.1:1", "ftp://somewhere"])
def test_a_server_that_does_not_answer(moorage: Moorage, tmp_path: Path, server: str) -> None:
    done = moorage("plan", str(tmp_path), "--server", server)
    assert done.exit_code == 1
    assert server in done.stderr


def test_an_empty_repository(moorage: Moorage, tmp_path: Path) -> None:
    done = moorage("plan", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "There are no models.\n")


SERVED = evolve(
    completed(f'name: "m" {CONFIG}'),
    max_batch_size=4,
    scheduling=DynamicBatching(preferred_batch_size=(4,)),
    input=(ModelInput("X", DataType.FP32, dims=(1,)), ModelInput("Z", DataType.FP32, dims=(1,))),
)


@pytest.mark.parametrize(
    "text,expected",
    [
        (CONFIG, []),
        ('backend: "python"', []),
        ('input { name: "X" }', []),
        ('input { name: "X" dims: 2 }', ["input"]),
        ('input { name: "W" }', ["input"]),
        (f"{CONFIG} max_batch_size: 8", ["max_batch_size"]),
        (f"{CONFIG} max_batch_size: 4 dynamic_batching {{ }}", []),
        (f"{CONFIG} max_batch_size: 4 dynamic_batching {{ max_queue_delay_microseconds: 9 }}", ["dynamic_batching"]),
        (f"{CONFIG} version_policy: {{ all {{}} }}", ["version_policy"]),
        (f"{CONFIG} instance_group {{ count: 2 }}", ["instance_group"]),
        (f"{CONFIG} instance_group {{ kind: KIND_GPU gpus: 7 }}", ["instance_group"]),
        (f'{CONFIG} instance_group {{ name: "m" count: 1 kind: KIND_CPU }}', []),
    ],
)
def test_what_differs(text: str, expected: list[str]) -> None:
    assert differences(parse_text(f'name: "m" {text}'), SERVED) == expected


def test_what_was_taken_out_of_the_configuration_differs() -> None:
    tagged = evolve(completed(CONFIG), metric_tags={"a": "b"})
    assert differences(parse_text(CONFIG), tagged) == ["metric_tags"]
    assert differences(parse_text(CONFIG), completed(f"{CONFIG} instance_group {{ count: 3 }}")) == ["instance_group"]
