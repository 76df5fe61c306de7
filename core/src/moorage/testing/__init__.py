"""For tests: a server of a temporary repository (`moorage.testing.fixtures`), and conformance suites for plugins to subclass.

The suites and fixtures need pytest, which `moorage` itself does not install. What is named here is imported when it is asked
for: the processes in which broken models are tried need none of it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.testing.backend_tests import BackendTests
    from moorage.testing.corruption import Mutant
    from moorage.testing.driving import Recorder, Runner
    from moorage.testing.model_case import Files, ModelCase
    from moorage.testing.remote import RemoteStore
    from moorage.testing.repository import RepositoryBuilder
    from moorage.testing.storage_tests import StorageTests

_MODULES = {
    "BackendTests": "backend_tests",
    "Files": "model_case",
    "ModelCase": "model_case",
    "Mutant": "corruption",
    "Recorder": "driving",
    "RemoteStore": "remote",
    "RepositoryBuilder": "repository",
    "Runner": "driving",
    "StorageTests": "storage_tests",
}

__all__ = [
    "BackendTests",
    "Files",
    "ModelCase",
    "Mutant",
    "Recorder",
    "RemoteStore",
    "RepositoryBuilder",
    "Runner",
    "StorageTests",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'moorage.testing' has no attribute '{name}'")
    module = f"{__name__}.{_MODULES[name]}"
    if module.endswith("_tests") and module not in sys.modules:
        import_module("pytest").register_assert_rewrite(module)  # so that its assertions show what they compared
    return getattr(import_module(module), name)
