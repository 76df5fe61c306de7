"""What the tests of this plugin share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulators.azure import azure, azurite, container, proxy, reached
from moorage_azure.storage import AzureStorage

__all__ = ["azure", "azurite", "container", "proxy", "reached"]


@pytest.fixture
def storage() -> Iterator[AzureStorage]:
    made = AzureStorage()
    yield made
    made.close()
