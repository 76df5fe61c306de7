"""The suite that every storage passes, against an emulator."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from emulators.azure import ACCOUNT, INSTALL_LIMIT, Container
from emulators.proxy import ALWAYS, Fault, Proxy
from moorage.testing import StorageTests
from moorage_azure.storage import AzureStorage

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(INSTALL_LIMIT + 60)]


class TestAzureStorage(StorageTests):
    storage = AzureStorage

    @pytest.fixture(autouse=True)
    def _store(self, reached: pytest.MonkeyPatch, proxy: Proxy, container: Container) -> None:
        self.proxy, self.container = proxy, container

    def place(self, folder: Path) -> str:
        return f"{self.container.url}/{folder.name}"

    def write(self, url: str, path: str, content: bytes) -> None:
        self.container.put(f"{url}/{path}".removeprefix(f"{self.container.url}/"), content)

    def remove(self, url: str, path: str) -> None:
        self.container.delete(f"{url}/{path}".removeprefix(f"{self.container.url}/"))

    def missing(self) -> str:
        return f"as://{ACCOUNT}/no-such-container/models"

    @contextlib.contextmanager
    def unreachable(self, url: str) -> Iterator[None]:
        self.proxy.faults.append(Fault(times=ALWAYS, status=403))
        yield
        self.proxy.reset()
