"""Which backend reads a model, as which platform, from which file."""

from __future__ import annotations

import pytest
from attrs import evolve

from moorage._plugins import Registry
from moorage._repository.discover import discover
from moorage.backend import ModelMatch, VersionFiles
from moorage.config import parse_text
from moorage.errors import ConfigError, PluginError

Found = tuple[str, str, str]


def found(registry: Registry, config: str, *names: str, model: str = "m") -> Found:
    files = VersionFiles(model, frozenset(names), version=1)
    config_found = discover(parse_text(config, file="config.pbtxt"), files, registry).config
    return config_found.backend, config_found.platform, config_found.default_model_filename


def refusal(registry: Registry, config: str, *names: str, model: str = "m") -> str:
    with pytest.raises(ConfigError) as caught:
        found(registry, config, *names, model=model)
    return str(caught.value)


ONNX = ("onnxruntime", "onnxruntime_onnx", "model.onnx")
PYTHON = ("python", "", "model.py")
SAVED = ("tensorflow", "tensorflow_savedmodel", "model.savedmodel")
GRAPH = ("tensorflow", "tensorflow_graphdef", "model.graphdef")


@pytest.mark.parametrize(
    "config, names, expected",
    [
        ("", ["model.onnx"], ONNX),
        ("", ["model.py", "helper.py"], PYTHON),
        ("", ["model.savedmodel/saved_model.pb"], SAVED),
        ("", ["model.graphdef"], GRAPH),
        ('backend: "onnxruntime"', ["model.onnx"], ONNX),
        ('backend: "onnxruntime"', ["net.onnx"], ONNX),
        ('backend: "onnxruntime"', [], ONNX),
        ('platform: "onnxruntime_onnx"', [], ONNX),
        ('backend: "python"', ["model.py", "model.onnx"], PYTHON),
        ('backend: "python"', ["model.onnx"], PYTHON),
        ('backend: "python" default_model_filename: "entry.py"', ["entry.py", "model.py"], ("python", "", "entry.py")),
        ('default_model_filename: "model.py"', ["model.onnx", "model.py"], PYTHON),
        ('default_model_filename: "model.onnx"', [], ONNX),
        ('default_model_filename: "model.savedmodel"', ["model.savedmodel/saved_model.pb", "model.graphdef"], SAVED),
        ('backend: "tensorflow"', ["model.graphdef"], GRAPH),
        ('backend: "tensorflow"', [], SAVED),
        ('platform: "tensorflow_graphdef"', ["model.graphdef"], GRAPH),
        ('platform: "tensorflow_graphdef"', ["model.savedmodel/saved_model.pb", "model.graphdef"], GRAPH),
        ('platform: "tensorflow_savedmodel"', ["model.savedmodel/saved_model.pb", "model.graphdef", "model.py"], SAVED),
        ('backend: "abacus"', ["model.py"], ("abacus", "", "")),
        ('backend: "mybackend"', ["x.bin"], ("mybackend", "", "")),
        ('platform: "tensorrt_plan"', ["model.plan"], ("tensorrt", "tensorrt_plan", "")),
        ('platform: "ensemble"', [], ("", "ensemble", "")),
        ('ensemble_scheduling { step { model_name: "a" } }', [], ("", "ensemble", "")),
    ],
)
def test_table(registry: Registry, config: str, names: list[str], expected: Found) -> None:
    assert found(registry, config, *names) == expected


@pytest.mark.parametrize(
    "model, expected",
    [("demo.mybackend", ("mybackend", "", "model.mybackend")), ("demo.onnxruntime", ONNX), ("a.python", PYTHON)],
)
def test_the_name_may_end_with_the_backend(registry: Registry, model: str, expected: Found) -> None:
    assert found(registry, "", "x.bin", model=model) == expected


def test_files_come_before_the_name(registry: Registry) -> None:
    assert found(registry, "", "model.py", model="demo.mybackend") == PYTHON


def test_nothing_matches(registry: Registry) -> None:
    message = refusal(registry, "", "x.bin", "y/z")
    assert "found x.bin, y; looked for" in message
    assert "model.onnx (onnxruntime)" in message
    assert "model.py (python)" in message
    assert "set 'backend' and 'default_model_filename' in config.pbtxt" in message
    assert "put the model's files into the folder of version" in refusal(registry, "")
    assert "'v2_1', the ending of the model's name, is no backend" in refusal(registry, "", "x", model="M.v2_1")


def test_nothing_matches_for_want_of_a_plugin(registry: Registry) -> None:
    message = refusal(Registry(), "", "model.onnx")
    assert "no backend is installed" in message
    assert 'pip install "moorage[onnx]"' in message


def test_a_tie_names_both_plugins(registry: Registry) -> None:
    message = refusal(registry, "", "model.py", "model.onnx")
    assert "plugin 'onnx' takes 'model.onnx' for onnxruntime" in message
    assert "plugin 'python' takes 'model.py' for python" in message


def test_the_same_answer_twice_is_no_tie(registry: Registry) -> None:
    twin = evolve(registry, discoverers=(*registry.discoverers, ("other", lambda _: ModelMatch(*ONNX))))
    assert found(twin, "", "model.onnx") == ONNX


def test_a_platform_of_nobody(registry: Registry) -> None:
    message = refusal(registry, 'platform: "python"', "model.py")
    assert "config.pbtxt:1" in message
    assert "there is no platform 'python'" in message
    assert 'write backend: "python"' in message


def test_what_is_given_stays_even_if_it_is_wrong(registry: Registry) -> None:
    config = 'backend: "python" platform: "onnxruntime_onnx" default_model_filename: "x"'
    assert found(registry, config, "model.onnx") == ("python", "onnxruntime_onnx", "x")


def test_a_plugin_that_fails_is_named(registry: Registry) -> None:
    def fails(files: VersionFiles) -> ModelMatch | None:
        raise PluginError("plugin 'x' failed in discover_model")

    with pytest.raises(PluginError, match="plugin 'x'"):
        found(evolve(registry, discoverers=(("x", fails),)), "", "model.py")


def test_a_plugin_that_fails_is_no_hindrance_to_others(registry: Registry) -> None:
    def fails(files: VersionFiles) -> ModelMatch | None:
        raise PluginError("plugin 'x' failed in discover_model")

    assert found(evolve(registry, discoverers=(("x", fails), *registry.discoverers)), "", "model.py") == PYTHON
