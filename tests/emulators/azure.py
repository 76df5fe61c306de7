"""Azure Blob Storage for tests: azurite as a process, containers in it, and what kind of request one is.

A conftest takes the fixtures by importing them:

    from emulators.azure import azure, azurite, container, proxy

azurite is a package of npm's. It is installed once into the user's cache folder, by `make test` or by the first test; where
that cannot be done, what needs it is skipped, with the reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import pytest
from attrs import frozen
from filelock import FileLock

from emulators.process import announced
from emulators.proxy import Proxy, Seen

VERSION: Final = "3.35.0"
"""The last that runs on Node.js before 22."""
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""No secret: the one that every emulator has."""
INSTALL_LIMIT: Final = 500
"""Seconds."""


def installed() -> Path:
    """The program. Raises RuntimeError saying why it cannot be had."""
    if not shutil.which("node") or not shutil.which("npm"):
        raise RuntimeError("node and npm are not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "moorage-tests"
    folder = cache / f"azurite-{VERSION}"
    program = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    cache.mkdir(parents=True, exist_ok=True)
    with FileLock(cache / "azurite.lock"):
        if not program.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            _install(partial)
            shutil.rmtree(folder, ignore_errors=True)
            partial.rename(folder)
    return program


def _install(folder: Path) -> None:
    options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
    command = ["npm", "install", *options, "--prefix", str(folder), f"azurite@{VERSION}"]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALL_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"npm has not installed azurite in {INSTALL_LIMIT} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"npm cannot install azurite: {done.stderr.strip()[-500:]}")


@contextlib.contextmanager
def started(program: Path) -> Iterator[str]:
    """The URL of an emulator that runs, and keeps what it holds in memory, while the context lasts."""
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--loose", "--disableTelemetry", "--silent"]
    command = ["node", str(program), *options, "--blobHost", "127.0.0.1", "--blobPort", "0"]
    with announced(command, r"successfully listens on (http://\S+)") as url:
        yield url


def connection_string(url: str, key: str = KEY) -> str:
    """For an emulator, or for the proxy before one."""
    return f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={key};BlobEndpoint={url}/{ACCOUNT};"


def kind(seen: Seen) -> str:
    """What a request asks for: "list", "get", "head", "put" … of blobs; "… container" of a container itself."""
    parts = urlsplit(seen.target)
    _account, _, path = parts.path.lstrip("/").partition("/")
    if "/" in path:
        return seen.method.lower()
    return "list" if parse_qs(parts.query).get("comp") == ["list"] and path else f"{seen.method.lower()} container"


@frozen(eq=False)
class Container:
    """A container of the emulator."""

    name: str
    client: Any
    """As Azure's library has it, to put things into it."""

    @property
    def url(self) -> str:
        return f"as://{ACCOUNT}/{self.name}"

    def put(self, name: str, content: bytes = b"", **more: Any) -> None:
        self.client.upload_blob(name, content, overwrite=True, **more)

    def fill(self, blobs: Mapping[str, bytes]) -> None:
        for name, content in blobs.items():
            self.put(name, content)

    def delete(self, name: str) -> None:
        self.client.delete_blob(name)


@pytest.fixture(scope="session")
def azurite() -> Iterator[str]:
    """The URL of an emulator of Azure Blob Storage; skips where there is none."""
    try:
        program = installed()
    except RuntimeError as error:
        pytest.skip(f"no emulator of Azure Blob Storage: {error}")
    with started(program) as url:
        yield url


@pytest.fixture
def proxy(azurite: str) -> Iterator[Proxy]:
    """A proxy before the emulator, without faults."""
    with Proxy(azurite, kind=kind) as made:
        yield made


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment without anything that leads to credentials, on this machine or outside."""
    for name in [name for name in os.environ if name.startswith(("AZURE_", "TRITON_", "MOORAGE_", "IDENTITY_", "MSI_"))]:
        monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
def reached(azure: pytest.MonkeyPatch, proxy: Proxy) -> pytest.MonkeyPatch:
    """The environment with a connection string that leads to the proxy, and nothing else."""
    azure.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(proxy.url))
    return azure


@pytest.fixture
def container(azurite: str) -> Iterator[Container]:
    """A new, empty container."""
    from azure.storage.blob import ContainerClient

    name = f"models-{uuid.uuid4().hex[:12]}"
    with ContainerClient.from_connection_string(connection_string(azurite), name) as client:
        client.create_container()
        yield Container(name, client)


if __name__ == "__main__":
    try:
        installed()
    except RuntimeError as problem:
        sys.exit(str(problem))
