"""What concerns all models at once: reload everything, and the plan that a server makes of its own repositories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import moorage
from inputs.models import BROKEN, VALUE, io
from moorage._cli.main import main
from moorage.errors import Unavailable
from moorage.testing import RepositoryBuilder

CONFIG = f'backend: "python"\n{io()}'
X = np.array([0.0], np.float32)


def ask(server: moorage.Server, name: str) -> float:
    return float(server.infer(name, {"X": X})["Y"][0])


@pytest.fixture
def repository(tmp_path: Path) -> RepositoryBuilder:
    builder = RepositoryBuilder(tmp_path / "models")
    for number, name in enumerate("abcde", 1):
        builder.python(name, VALUE.format(value=float(number)), config=CONFIG)
    return builder


@pytest.fixture
def server(repository: RepositoryBuilder) -> Iterator[moorage.Server]:
    with moorage.Server(model_repository=str(repository.path), model_control_mode="explicit", load_model="*") as server:
        yield server


def change(repository: RepositoryBuilder) -> None:
    """Three models change, one of them in its configuration; one breaks; one stays; one is new."""
    for name in "ab":
        repository.python(name, VALUE.format(value=10.0), config=CONFIG)
    repository.add("c", {}, config=f'{CONFIG} metric_tags {{ key: "k" value: "v" }}')
    repository.add("d", {}, config=f"{CONFIG} max_batchsize: 3")
    repository.python("new", VALUE.format(value=7.0), config=CONFIG)


def test_reload_tells_what_became_of_each_model(server: moorage.Server, repository: RepositoryBuilder) -> None:
    change(repository)
    told = {one.name: one for one in server.reload()}
    assert {name: one.state for name, one in told.items()} == {
        "a": "reloaded",
        "b": "reloaded",
        "c": "reloaded",
        "d": "error",
        "e": "unchanged",
    }
    assert "max_batchsize" in told["d"].reason
    assert [ask(server, name) for name in "abcde"] == [10, 10, 3, 4, 5]


def test_reload_is_refused_where_clients_have_no_say(repository: RepositoryBuilder) -> None:
    with moorage.Server(model_repository=str(repository.path)) as server, pytest.raises(Unavailable, match=r"NONE.*explicit"):
        server.reload()


def planned(*arguments: str) -> tuple[int, set[tuple[str, int | None, str, str]]]:
    done = CliRunner().invoke(main, ["plan", "--json", *arguments])
    steps = json.loads(done.output)
    return done.exit_code, {
        (step["model"], step["version"], step["action"], step["reason"].partition(":")[0]) for step in steps
    }


def test_server_says_what_it_would_do_with_its_own_repositories(server: moorage.Server, repository: RepositoryBuilder) -> None:
    url = f"http://127.0.0.1:{server.serve_http(0)}"
    assert planned("--server", url) == (0, {(name, 1, "keep", "") for name in "abcde"})
    change(repository)
    repository.remove("e")
    repository.add("a", {}, config=f"{CONFIG} instance_group {{ count: 2 }}")
    repository.python("b", VALUE.format(value=11.0), version=2)
    code, steps = planned("--server", url)
    assert code == 1
    steps.discard(next(step for step in steps if step[2] == "refuse"))
    assert steps == {
        ("a", 1, "replace", "the configuration differs"),
        ("b", 2, "load", ""),
        ("b", 1, "unload", "it is not there, or the version policy does not pick it"),
        ("c", 1, "replace", "the configuration differs"),
        ("d", 1, "keep", "what is in the repository cannot be loaded"),
        ("e", 1, "unload", "it is in no repository"),
    }
    assert [ask(server, name) for name in "abcde"] == [1, 2, 3, 4, 5]


def test_plan_of_changed_files_alone(server: moorage.Server, repository: RepositoryBuilder) -> None:
    repository.python("a", VALUE.format(value=12.0))
    url = f"127.0.0.1:{server.serve_http(0)}"
    assert ("a", 1, "replace", "the files differ") in planned("--server", url)[1]


def test_plan_needs_a_repository_or_a_server() -> None:
    done = CliRunner().invoke(main, ["plan"])
    assert done.exit_code == 2
    assert "--server" in done.output


def test_versions_are_loaded_and_unloaded_in_process(server: moorage.Server, repository: RepositoryBuilder) -> None:
    repository.python("a", VALUE.format(value=20.0), version=2)
    repository.python("a", VALUE.format(value=30.0), version=3)
    server.load("a", versions=[2])
    assert ask(server, "a") == 20
    assert {entry.version for entry in server.index(ready=True) if entry.name == "a"} == {"1", "2"}
    server.unload("a", versions=[2])
    assert ask(server, "a") == 1


def test_a_broken_model_does_not_hide_what_reload_did(server: moorage.Server, repository: RepositoryBuilder) -> None:
    repository.python("a", BROKEN)
    repository.python("b", VALUE.format(value=21.0))
    states = {one.name: one.state for one in server.reload()}
    assert (states["a"], states["b"]) == ("error", "reloaded")
    assert (ask(server, "a"), ask(server, "b")) == (1, 21)
