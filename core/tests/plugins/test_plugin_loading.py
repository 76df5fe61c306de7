"""Plugins are loaded one by one: what is wrong with one is written down and stops none of the others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Never

import pytest

from moorage._plugins import PluginInfo, Registry, load_registry
from moorage._plugins.advice import FIRST_PARTY
from moorage._storage import LocalStorage
from moorage._storage import plugin as local_storage
from moorage.backend import ModelMatch, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.control import ModelId
from moorage.errors import NotFound, PluginError
from moorage.hookspecs import StateChange, hookimpl

Install = Callable[[str, str, str], None]
BackendCode = Callable[[str, str], str]
FILES = VersionFiles("m", frozenset({"model.onnx"}))


def info(registry: Registry, name: str) -> PluginInfo:
    (found,) = (plugin for plugin in registry.plugins if plugin.name == name)
    return found


def test_a_good_plugin_fills_the_tables(install: Install, backend_code: BackendCode) -> None:
    install("acme-plugin", "acme", backend_code("acme", "acme_net"))
    registry = load_registry()
    assert registry.backend("acme").name == "acme"
    assert registry.platform("acme_net") == "acme"
    assert info(registry, "acme") == PluginInfo("acme", "acme-plugin", "1.2", ("backend acme", "platform acme_net"))


def test_a_broken_import_stops_no_other_and_keeps_its_traceback(install: Install, backend_code: BackendCode) -> None:
    install("a-broken", "broken", "import no_such_module_anywhere")
    install("b-exits", "exits", "raise SystemExit(3)")
    install("c-fine", "fine", backend_code("fine", ""))
    registry = load_registry()
    assert registry.backend("fine")
    assert "Traceback" in info(registry, "broken").error
    assert "no_such_module_anywhere" in info(registry, "broken").error
    assert "SystemExit" in info(registry, "exits").error


def test_using_a_broken_first_party_plugin_shows_its_traceback(install: Install) -> None:
    install("moorage_onnx", "onnx", "import no_such_module_anywhere")
    with pytest.raises(NotFound, match=r"plugin 'onnx' \(moorage_onnx\)(?s:.*)no_such_module_anywhere"):
        load_registry().backend("onnxruntime")


@pytest.mark.parametrize(
    "lookup, name, advice",
    [
        ("backend", "onnxruntime", 'pip install "moorage[onnx]"'),
        ("backend", "python", 'pip install "moorage[python]"'),
        ("backend", "pytorch", 'pip install "moorage[torchscript]"'),
        ("backend", "tensorflow", 'pip install "moorage[tensorflow]"'),
        ("backend", "openvino", 'pip install "moorage[openvino]"'),
        ("backend", "tensorrt", 'pip install "moorage[tensorrt]"'),
        ("platform", "tensorrt_plan", 'pip install "moorage[tensorrt]"'),
        ("storage", "s3", 'pip install "moorage[s3]"'),
        ("storage", "gs", 'pip install "moorage[gcs]"'),
        ("storage", "as", 'pip install "moorage[azure]"'),
    ],
)
def test_a_missing_first_party_plugin_says_what_to_install(install: Install, lookup: str, name: str, advice: str) -> None:
    with pytest.raises(NotFound) as caught:
        getattr(load_registry(), lookup)(name)
    assert advice in str(caught.value)


def test_what_the_advice_installs_is_an_extra_of_the_core() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for plugin in FIRST_PARTY:
        there = any(line.startswith(plugin.distribution) for line in extras.get(plugin.extra, ()))
        assert there is not plugin.planned, plugin.distribution


def test_an_unknown_name_lists_what_there_is(install: Install, backend_code: BackendCode) -> None:
    install("acme-plugin", "acme", backend_code("abacus", ""))
    registry = load_registry(builtins=(("local storage", local_storage),))
    with pytest.raises(NotFound, match="did you mean 'abacus'"):
        registry.backend("abacuss")
    with pytest.raises(NotFound, match="did you mean 'abacus'"):
        registry.backend("acme_abacus_something")
    with pytest.raises(NotFound, match="backend 'us': installed are: abacus"):
        registry.backend("us")
    with pytest.raises(NotFound, match="storage scheme 'oss': installed are: file"):
        registry.storage("oss")
    with pytest.raises(NotFound, match="control mode 'sometimes': installed are: none"):
        registry.control_mode("sometimes")


def test_builtins_come_in_by_the_same_hooks() -> None:
    registry = load_registry(builtins=(("local storage", local_storage),), blocked=())
    assert registry.storage("file") is LocalStorage
    assert registry.plugins[0].registered == ("storage file",)


def test_a_blocked_plugin_is_listed_but_not_imported(install: Install) -> None:
    install("acme", "one", "raise AssertionError('imported')")
    install("acme-two", "two", "raise AssertionError('imported')")
    registry = load_registry(blocked=("one", "acme-two"))
    assert [plugin.error for plugin in registry.plugins] == ["it is switched off"] * 2


def test_functions_are_called_by_position_and_named_after_their_plugin(install: Install) -> None:
    install(
        "acme",
        "finder",
        """
        from moorage.backend import ModelMatch
        from moorage.hookspecs import hookimpl

        @hookimpl
        def discover_model(files):
            return ModelMatch("x", "y", "z") if "model.onnx" in files.names else None

        @hookimpl
        def complete_config():
            return None

        @hookimpl
        def model_state_changed(change):
            raise ValueError("no")
        """,
    )
    registry = load_registry()
    ((name, discover),) = registry.discoverers
    assert name == "finder"
    assert discover(FILES) == ModelMatch("x", "y", "z")
    assert discover(VersionFiles("m", frozenset())) is None
    assert registry.completers[0][1](ModelConfig(), FILES) is None
    assert registry.selectors == ()
    with pytest.raises(PluginError, match="plugin 'finder' failed in model_state_changed: ValueError: no"):
        registry.observers[0][1](StateChange(ModelId("m"), 1, "READY"))


def test_listing_plugins_imports_no_framework() -> None:
    heavy = ["torch", "tensorflow", "onnxruntime", "openvino", "tensorrt", "s3fs", "gcsfs", "adlfs"]
    code = (
        "import sys\n"
        "from moorage._plugins import load_registry\n"
        "from moorage._storage import plugin\n"
        "load_registry(builtins=(('local storage', plugin),))\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_a_plugin_may_be_any_object() -> None:
    class Plugin:
        @hookimpl
        def discover_model(self, files: VersionFiles) -> ModelMatch | None:
            return ModelMatch("x", "", "") if files.names else None

    registry = load_registry(builtins=(("object", Plugin()),))
    assert registry.discoverers[0][1](FILES) == ModelMatch("x", "", "")


def nothing() -> list[object]:
    return []


def module(**functions: object) -> ModuleType:
    made = ModuleType("made_up")
    for name, function in functions.items():
        function.__module__ = "made_up"
        setattr(made, name, function)
    return made


def test_a_misspelt_hook_is_refused_with_a_suggestion() -> None:
    registry = load_registry(builtins=(("typo", module(backnds=hookimpl(nothing))),))
    assert registry.plugins[0].error == "'backnds' is not a hook of moorage; did you mean 'backends'?"


def test_a_hook_with_a_strange_name_lists_the_hooks() -> None:
    registry = load_registry(builtins=(("typo", module(xyz=hookimpl(nothing))),))
    assert "the hooks are backends, complete_config" in registry.plugins[0].error


def test_wrong_arguments_are_refused_with_the_right_ones() -> None:
    registry = load_registry(builtins=(("wrong", module(discover_model=hookimpl(lambda paths: None))),))
    assert registry.plugins[0].error == "hook 'discover_model' takes files, not paths"
    assert registry.discoverers == ()


def test_unmarked_functions_are_reported_and_the_rest_is_used() -> None:
    def discover_models(files: VersionFiles) -> None:
        return None

    def backends() -> list[object]:
        return []

    def listing() -> list[object]:
        return []

    def control_mode() -> list[object]:
        return []

    storage = hookimpl(lambda: [LocalStorage])
    plugin = module(
        storage_schemes=storage, discover_models=discover_models, backends=backends, listing=listing, _backend=listing
    )
    plugin.control_mode = control_mode  # type: ignore[attr-defined]
    registry = load_registry(builtins=(("forgot", plugin),))
    error = registry.plugins[0].error
    assert "function 'backends' is not marked with @hookimpl" in error
    assert "function 'discover_models' is no hook; did you mean 'discover_model'" in error
    assert "listing" not in error
    assert "control_mode" not in error  # it is another module's
    assert registry.storage("file") is LocalStorage


def test_a_hook_that_fails_costs_only_its_own_answers() -> None:
    def fails() -> Never:
        raise ValueError("out of order")

    plugin = module(backends=hookimpl(fails), storage_schemes=hookimpl(lambda: [LocalStorage]))
    registry = load_registry(builtins=(("half", plugin),))
    assert registry.storage("file") is LocalStorage
    assert "hook 'backends' failed: Traceback" in registry.plugins[0].error


@pytest.mark.parametrize(
    "offered, complaint",
    [
        (SimpleNamespace(schemes=("x",)), "is not a subclass of moorage's Storage"),
        (type("Half", (LocalStorage,), {"schemes": ()}), "class Half must set 'schemes' to its URL schemes"),
        (type("Text", (LocalStorage,), {"schemes": "s3"}), "class Text must set 'schemes' to its URL schemes"),
        (type("Odd", (LocalStorage,), {"schemes": (3,)}), "class Odd must set 'schemes' to its URL schemes"),
        (LocalStorage.__mro__[2], "class Storage does not implement download, list, read"),
    ],
)
def test_classes_that_are_not_what_the_hook_wants(offered: object, complaint: str) -> None:
    plugin = module(storage_schemes=hookimpl(lambda: [offered]))
    registry = load_registry(builtins=(("odd", plugin),))
    assert complaint in registry.plugins[0].error
    assert registry.storages == {}


def test_an_answer_of_the_wrong_kind_is_the_plugins_fault() -> None:
    plugin = module(discover_model=hookimpl(lambda files: "onnx"))
    ((_, discover),) = load_registry(builtins=(("odd", plugin),)).discoverers
    with pytest.raises(PluginError, match="plugin 'odd' answered discover_model with a str, not a ModelMatch"):
        discover(FILES)


def test_a_plugin_that_raises_what_nobody_catches_stops_no_other(install: Install, backend_code: BackendCode) -> None:
    install("grim", "grim", "class Grim(BaseException): pass\nraise Grim('no import')")
    install("shy", "shy", SHY)
    install("acme-plugin", "acme", backend_code("acme", ""))
    registry = load_registry()
    assert "Grim: no import" in info(registry, "grim").error
    assert "nobody asks me" in info(registry, "shy").error
    assert registry.backend("acme").name == "acme"


SHY = """
    from moorage.hookspecs import hookimpl

    class Meta(type):
        def __repr__(cls):
            raise BaseException("nobody asks me")

    class Shy(metaclass=Meta):
        pass

    @hookimpl
    def backends():
        return [Shy]
    """


def test_whatever_a_hook_raises_names_its_plugin(install: Install) -> None:
    code = """
        from moorage.hookspecs import hookimpl

        @hookimpl
        def discover_model(files):
            raise SystemExit("enough")
        """
    install("quitter", "quitter", code)
    ((_, discover),) = load_registry().discoverers
    with pytest.raises(PluginError, match="plugin 'quitter' failed in discover_model: SystemExit: enough"):
        discover(FILES)
