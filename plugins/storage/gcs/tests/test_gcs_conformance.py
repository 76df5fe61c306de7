"""The suite that every storage must pass, against an emulator."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulators.gcs import Bucket
from emulators.proxy import ALWAYS, Fault, Proxy
from moorage.testing import StorageTests
from moorage_gcs.storage import GcsStorage

pytestmark = pytest.mark.heavy


class TestGcsStorage(StorageTests):
    storage = GcsStorage
    names = (*StorageTests.names, "model/1/what?#%20.bin")

    @pytest.fixture(autouse=True)
    def _emulated(self, bucket: Bucket, proxy: Proxy, reached: pytest.MonkeyPatch) -> None:
        self.bucket, self.proxy = bucket, proxy

    def place(self, folder: Path) -> str:
        return f"{self.bucket.url}/models/{folder.name}"

    def write(self, url: str, path: str, content: bytes) -> None:
        self.bucket.put(self._name(url, path), content)

    def remove(self, url: str, path: str) -> None:
        self.bucket.delete(self._name(url, path))

    def missing(self) -> str:
        return "gs://no-such-bucket/models"

    @contextmanager
    def unreachable(self, url: str) -> Iterator[None]:
        self.proxy.faults.append(Fault(status=503, times=ALWAYS))
        yield
        self.proxy.reset()

    def _name(self, url: str, path: str) -> str:
        return f"{url}/{path}".removeprefix(f"{self.bucket.url}/")
