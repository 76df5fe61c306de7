"""For tests: a server of a temporary repository (`moorage.testing.fixtures`), and conformance suites for plugins to subclass.

This room needs pytest, which `moorage` itself does not install.
"""

import pytest

pytest.register_assert_rewrite("moorage.testing.backend_suite", "moorage.testing.storage_tests")

from moorage.testing.backend_tests import BackendTests  # noqa: E402 - after the line above
from moorage.testing.corruption import Mutant  # noqa: E402
from moorage.testing.driving import Recorder, Runner  # noqa: E402
from moorage.testing.model_case import Files, ModelCase  # noqa: E402
from moorage.testing.remote import RemoteStore  # noqa: E402
from moorage.testing.repository import RepositoryBuilder  # noqa: E402
from moorage.testing.storage_tests import StorageTests  # noqa: E402

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
