"""Two plugins under one name: nobody wins by the order of installation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage._plugins import load_registry
from moorage._storage import LocalStorage
from moorage._storage import plugin as local_storage
from moorage.errors import NotFound

Install = Callable[[str, str, str], None]
BackendCode = Callable[[str, str], str]


@pytest.mark.parametrize("order", [("acme", "zeta"), ("zeta", "acme")])
def test_of_two_third_parties_neither_is_used(install: Install, backend_code: BackendCode, order: tuple[str, str]) -> None:
    for distribution in order:
        install(distribution, distribution[0], backend_code("abacus", "abacus_net"))
    install("other", "other", backend_code("other", ""))
    registry = load_registry()
    assert sorted(registry.backends) == ["other"]
    assert registry.platforms == {}
    with pytest.raises(NotFound, match=r"plugin 'a' \(acme\) and plugin 'z' \(zeta\): none of them is used"):
        registry.backend("abacus")
    errors = {plugin.name: plugin.error for plugin in registry.plugins}
    assert "(acme)" in errors["z"]
    assert "(zeta)" in errors["a"]
    assert errors["other"] == ""


def test_a_built_in_stays(install: Install) -> None:
    install(
        "rival",
        "rival",
        """
        from moorage._storage import LocalStorage
        from moorage.hookspecs import hookimpl

        class Mine(LocalStorage):
            schemes = ("file", "mine")

        @hookimpl
        def storage_schemes():
            return [Mine]
        """,
    )
    registry = load_registry(builtins=(("local storage", local_storage),))
    assert registry.storage("file") is LocalStorage
    assert registry.storage("mine").__name__ == "Mine"
    builtin, rival = registry.plugins
    assert builtin.error == ""
    assert builtin.registered == ("storage file",)
    assert "the built-in one is used" in rival.error
    assert rival.registered == ("storage mine",)


def test_a_platform_of_two_backends_belongs_to_none(install: Install, backend_code: BackendCode) -> None:
    install("acme", "acme", backend_code("acme", "net"))
    install("zeta", "zeta", backend_code("zeta", "net"))
    registry = load_registry()
    assert sorted(registry.backends) == ["acme", "zeta"]
    with pytest.raises(NotFound, match="platform 'net' is offered by"):
        registry.platform("net")


def test_one_plugin_with_two_classes_of_a_name(install: Install, backend_code: BackendCode) -> None:
    code = backend_code("acme", "").replace("return [Fake]", "return [Fake, type('Twin', (Fake,), {})]")
    install("acme", "acme", code)
    with pytest.raises(NotFound, match="offered by two classes of plugin 'acme'"):
        load_registry().backend("acme")


def test_the_same_class_twice_is_one(install: Install, backend_code: BackendCode) -> None:
    install("acme", "acme", backend_code("acme", "").replace("[Fake]", "[Fake, Fake]"))
    assert load_registry().backend("acme")


def test_platforms_go_with_their_backend(install: Install, backend_code: BackendCode) -> None:
    install("acme", "acme", backend_code("abacus", "acme_net"))
    install("zeta", "zeta", backend_code("abacus", "zeta_net"))
    assert load_registry().platforms == {}
