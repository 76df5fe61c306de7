"""The suite that every storage passes, against an emulator of S3."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy
from emulators.s3 import Bucket, made
from moorage.storage import Storage
from moorage.testing.storage_tests import StorageTests
from moorage_s3.storage import S3Storage

pytestmark = pytest.mark.heavy


class TestS3Storage(StorageTests):
    storage: ClassVar[type[Storage]] = S3Storage

    @pytest.fixture(autouse=True)
    def surroundings(self, keys: pytest.MonkeyPatch, moto: str, proxy: Proxy) -> None:
        keys.setenv("AWS_MAX_ATTEMPTS", "1")
        self.proxy = proxy
        self.bucket: Bucket = made(moto)

    def place(self, folder: Path) -> str:
        return f"s3://{self.proxy.url}/{self.bucket.name}/models"

    def write(self, url: str, path: str, content: bytes) -> None:
        self.bucket.put(f"{url.partition(self.bucket.name + '/')[2]}/{path}", content)

    def remove(self, url: str, path: str) -> None:
        self.bucket.delete(f"{url.partition(self.bucket.name + '/')[2]}/{path}")

    def missing(self) -> str:
        return f"s3://{self.proxy.url}/no-such-bucket/models"

    def unreachable(self, url: str) -> AbstractContextManager[object]:
        return self.failing()

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        self.proxy.faults.append(Fault(status=500, times=ALWAYS))
        yield
        self.proxy.faults.clear()
