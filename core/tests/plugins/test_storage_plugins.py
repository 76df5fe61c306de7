"""A storage of somebody else's, found by its entry point, serves its scheme; two for one scheme serve none."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moorage._plugins import load_registry
from moorage._repository.repositories import Repositories
from moorage.errors import NotFound

Install = Callable[[str, str, str], None]
OSS = """
    from moorage.hookspecs import hookimpl
    from moorage.storage import Entry, Storage

    class OssStorage(Storage):
        schemes = ("oss",)

        def list(self, url):
            return (Entry("model/1/model.bin", 1, "etag"),) if url == "oss://b/p" else ()

        def read(self, url, path):
            return b""

        def download(self, url, entries, target, progress=None): ...

    @hookimpl
    def storage_schemes():
        return [OssStorage]
"""


def test_a_scheme_of_a_plugin_is_listed_by_it(install: Install) -> None:
    install("oss-plugin", "oss", OSS)
    assert [model.name for model in Repositories(["oss://b/p/"], load_registry()).scan().models] == ["model"]


def test_two_plugins_for_a_scheme_are_an_error_that_names_both(install: Install) -> None:
    install("oss-plugin", "oss", OSS)
    install("oss-other", "other", OSS)
    with pytest.raises(NotFound) as caught:
        Repositories(["oss://b/p"], load_registry())
    assert "'oss'" in str(caught.value)
    assert "'other'" in str(caught.value)


def test_a_broken_plugin_is_mentioned_with_what_else_there_is(install: Install) -> None:
    install("oss-plugin", "oss", "import no_such_module_anywhere")
    with pytest.raises(NotFound) as caught:
        Repositories(["oss://b/p"], load_registry())
    assert "plugin 'oss' (oss-plugin) has a problem" in str(caught.value)
    assert "no_such_module_anywhere" in str(caught.value)
