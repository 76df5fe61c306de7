"""The conformance suite for backends: subclass it in the plugin's tests."""

from __future__ import annotations

from moorage.testing.backend_suite.datatypes import DataTypeTests
from moorage.testing.backend_suite.files import FileTests
from moorage.testing.backend_suite.loading import LoadingTests
from moorage.testing.backend_suite.running import RunningTests


class BackendTests(LoadingTests, RunningTests, DataTypeTests, FileTests):
    """Any backend must pass these. A subclass names its class and provides its models:

        class TestMyBackend(BackendTests):
            backend = MyBackend

            def add_sub(self) -> ModelCase:
                return ModelCase(HERE / "add_sub.bin", ADD_SUB_CONFIG, "model.bin")

    `moorage.testing.backend_suite.base.BackendSuite` documents the other methods and settings. Those that return None (or an
    empty mapping) leave out the tests that need them. The plugin must be installed, since some tests serve its models with a
    real server, in this process and in others.
    """
