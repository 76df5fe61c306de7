"""The parts of `moorage.testing.BackendTests`."""

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in ("comparing", "datatypes", "files", "loading", "running")))
