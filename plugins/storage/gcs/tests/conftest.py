"""What the tests of this plugin share: an emulator, and an environment that leads nowhere else."""

from __future__ import annotations

import pytest
from tenacity import wait_none

from emulators.gcs import bucket, fake_gcs, gcs, proxy, reached

__all__ = ["bucket", "fake_gcs", "gcs", "proxy", "reached"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried again is tried at once."""
    monkeypatch.setattr("moorage.storage.transfer.PAUSES", wait_none())
