"""For tests: a server of a temporary repository (`moorage.testing.fixtures`), and conformance suites for plugins to subclass.

This room needs pytest, which `moorage` itself does not install.
"""

import pytest

pytest.register_assert_rewrite("moorage.testing.backend_tests")

from moorage.testing.backend_tests import BackendTests  # noqa: E402 - after the line above
from moorage.testing.driving import Recorder, Runner  # noqa: E402
from moorage.testing.model_case import ModelCase  # noqa: E402
from moorage.testing.repository import RepositoryBuilder  # noqa: E402

__all__ = ["BackendTests", "ModelCase", "Recorder", "RepositoryBuilder", "Runner"]
