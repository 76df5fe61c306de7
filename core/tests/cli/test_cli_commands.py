"""The commands beside `serve`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import moorage as package

Moorage = Callable[..., Result]
FRAMEWORKS = ("onnxruntime", "torch", "tensorflow", "tensorrt", "openvino")
SERVERS = ("grpc", "litestar", "uvicorn", "numpy")

MODEL = """
class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "X", "data_type": "TYPE_FP32", "dims": [1]})
        config.add_output({"name": "Y", "data_type": "TYPE_FP32", "dims": [1]})
        return config

    def execute(self, requests):
        return []
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Three models: one sound, one whose configuration has two faults, one whose code cannot be loaded."""
    for name, code, config in (
        ("sound", MODEL, ""),
        ("misspelt", MODEL, 'backend: "python"\ninptu [ ]\nmax_batch_size: "many"\n'),
        ("broken", "class TritonPythonModel: oops\n", 'backend: "python"\n'),
    ):
        version = tmp_path / name / "1"
        version.mkdir(parents=True)
        (version / "model.py").write_text(code)
        if config:
            (tmp_path / name / "config.pbtxt").write_text(config)
    return tmp_path


def faults(done: Result) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for one in json.loads(done.stdout):
        found.setdefault(one["model"], []).append(one["fault"] | {"version": one["version"]})
    return found


def test_check_finds_all_faults_with_file_and_line(moorage: Moorage, repository: Path) -> None:
    pytest.importorskip("moorage_python")
    done = moorage("check", "--json", str(repository))
    assert done.exit_code == 1
    found = faults(done)
    assert set(found) == {"misspelt", "broken"}
    places = [(fault["file"], fault["line"], fault["field"]) for fault in found["misspelt"]]
    config = str(repository / "misspelt" / "config.pbtxt")
    assert places == [(config, 2, "inptu"), (config, 3, "max_batch_size")]
    assert found["broken"][0]["version"] == 1
    assert "oops" in str(found["broken"][0]["message"])
    keys = {"message", "file", "line", "column", "field", "advice", "version"}
    assert all(set(fault) == keys for one in found.values() for fault in one)


def test_check_without_loading_reads_configurations_only(moorage: Moorage, repository: Path) -> None:
    pytest.importorskip("moorage_python")
    done = moorage("check", "--json", "--no-load", str(repository))
    assert done.exit_code == 1
    assert set(faults(done)) == {"misspelt"}


def test_check_of_a_sound_repository(moorage: Moorage, repository: Path) -> None:
    pytest.importorskip("moorage_python")
    for name in ("misspelt", "broken"):
        (repository / name).rename(repository / f".{name}")
    done = moorage("check", str(repository))
    assert (done.exit_code, done.stdout) == (0, "No faults.\n")
    assert json.loads(moorage("check", "--json", str(repository)).stdout) == []


def test_check_of_no_models_says_so(moorage: Moorage, tmp_path: Path) -> None:
    done = moorage("check", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, "There are no models.\n")


def test_check_fills_in_variables_when_asked(moorage: Moorage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODEL_BACKEND", "nope")
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text("backend: ${MODEL_BACKEND}")
    (fault,) = faults(moorage("check", "--json", "--no-load", "--substitute-variables", str(tmp_path)))["m"]
    assert "no backend 'nope'" in str(fault["message"])


def test_check_without_loading_tells_of_a_backend_that_is_not_there(moorage: Moorage, tmp_path: Path) -> None:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "config.pbtxt").write_text('backend: "nope"')
    (fault,) = faults(moorage("check", "--json", "--no-load", str(tmp_path)))["m"]
    assert (fault["line"], fault["field"]) == (1, "backend")
    assert "no backend 'nope'" in str(fault["message"])


def test_check_shows_people_the_place_and_the_advice(moorage: Moorage, repository: Path) -> None:
    shown = moorage("check", "--no-load", str(repository), COLUMNS="300").stdout
    assert f"{repository}/misspelt/config.pbtxt:2" in shown
    assert "write input" in shown


def test_check_of_a_folder_that_is_not_there(moorage: Moorage, tmp_path: Path) -> None:
    done = moorage("check", "--json", str(tmp_path / "nowhere"))
    assert done.exit_code == 1
    assert "does not exist" in str(faults(done)[""][0]["message"])


def test_plugins_as_json(moorage: Moorage) -> None:
    done = moorage("plugins", "--json")
    assert done.exit_code == 0
    plugins = {one["name"]: one for one in json.loads(done.stdout)}
    assert set(plugins["control modes"]) == {"name", "distribution", "version", "registered", "error"}
    assert "control mode explicit" in plugins["control modes"]["registered"]


def test_plugins_for_people(moorage: Moorage) -> None:
    shown = moorage("plugins", COLUMNS="200").stdout
    assert re.search(rf"moorage \(built in\) +│ {re.escape(package.__version__)}", shown)
    assert "storage file" in shown


def test_a_blocked_plugin_registers_nothing(moorage: Moorage) -> None:
    pytest.importorskip("moorage_python")
    shown = moorage("plugins", "--json", "--block-plugin=python").stdout
    assert "backend python" not in shown


def modules_after(*arguments: str) -> set[str]:
    """What is imported in a process of its own by `moorage` with these arguments."""
    code = "import sys; from moorage._cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=100, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_plugins_are_listed_without_any_framework() -> None:
    assert not modules_after("plugins", "--json") & set(FRAMEWORKS)


@pytest.mark.parametrize("arguments", [("--version",), ("serve", "--help"), ("completion", "bash")])
def test_what_needs_no_server_does_not_load_one(arguments: tuple[str, ...]) -> None:
    assert not modules_after(*arguments) & set(SERVERS)


def test_version(moorage: Moorage) -> None:
    assert moorage("--version").output == f"moorage, version {package.__version__}\n"


def test_the_overview_tells_what_each_command_is_for(moorage: Moorage) -> None:
    shown = moorage("--help").output
    for command in ("serve", "check", "plugins", "completion"):
        assert f"  {command} " in shown
    assert "..." not in shown.partition("Commands:")[2]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_asks_moorage(moorage: Moorage, shell: str) -> None:
    done = moorage("completion", shell)
    assert done.exit_code == 0
    assert "_MOORAGE_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    "words, completed",
    [
        ("moorage che", {"plain,check"}),
        ("moorage serve --model-rep", {"plain,--model-repository"}),
        ("moorage serve --exit-on-error ", {"plain,true", "plain,false"}),
        ("moorage serve --log-format j", {"plain,json"}),
        ("moorage serve --model-repository mod", {"file,mod"}),
    ],
)
def test_words_are_completed(moorage: Moorage, words: str, completed: set[str]) -> None:
    last = str(len(words.split(" ")) - 1)
    done = moorage(_MOORAGE_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=last)
    assert set(done.stdout.split()) == completed
