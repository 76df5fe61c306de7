"""A repository in each of the stores, and servers of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pytest
from attrs import define, field, frozen

import moorage
from emulators.azure import azure, azurite, connection_string
from emulators.azure import container as azure_container
from emulators.azure import kind as azure_kind
from emulators.gcs import bucket as gcs_bucket
from emulators.gcs import fake_gcs, gcs
from emulators.gcs import kind as gcs_kind
from emulators.proxy import Proxy
from emulators.s3 import aws, keys, moto
from emulators.s3 import bucket as s3_bucket
from emulators.s3 import kind as s3_kind
from moorage._app import wiring
from moorage.hookspecs import StateChange, hookimpl

__all__ = ["aws", "azure", "azure_container", "azurite", "fake_gcs", "gcs", "gcs_bucket", "keys", "moto", "s3_bucket"]

PATIENCE: Final = 30.0
X = np.array([0.0], np.float32)


@frozen(eq=False)
class Shop:
    """A repository in a store, behind a proxy. Changes go past the proxy."""

    url: str
    proxy: Proxy
    put_object: Callable[[str, bytes], Any]
    delete_object: Callable[[str], Any]

    def put(self, files: Mapping[str, str | bytes]) -> None:
        """Store files, one after the other, as an upload does."""
        for path, content in files.items():
            self.put_object(f"models/{path}", content.encode() if isinstance(content, str) else content)

    def delete(self, *paths: str) -> None:
        for path in paths:
            self.delete_object(f"models/{path}")


@define(eq=False)
class News:
    """The changes of state that a server tells, for those who wait for one."""

    changes: list[StateChange] = field(factory=list)
    came: threading.Condition = field(factory=threading.Condition)

    @hookimpl
    def model_state_changed(self, change: StateChange) -> None:
        with self.came:
            self.changes.append(change)
            self.came.notify_all()

    def wait(self, model: str, version: int, state: str = "READY", times: int = 1) -> None:
        """Until a version has entered a state so many times."""
        with self.came:
            assert self.came.wait_for(lambda: self.count(model, version, state) >= times, PATIENCE), self.changes

    def count(self, model: str, version: int, state: str = "READY") -> int:
        told = ((change.model.name, change.version, change.state) for change in self.changes)
        return sum(one == (model, version, state) for one in told)


@pytest.fixture
def s3_shop(keys: pytest.MonkeyPatch, moto: str, s3_bucket: Any) -> Iterator[Shop]:
    with Proxy(moto, kind=s3_kind) as proxy:
        yield Shop(f"s3://{proxy.url}/{s3_bucket.name}/models", proxy, s3_bucket.put, s3_bucket.delete)


@pytest.fixture
def gcs_shop(gcs: pytest.MonkeyPatch, fake_gcs: str, gcs_bucket: Any) -> Iterator[Shop]:
    with Proxy(fake_gcs, kind=gcs_kind) as proxy:
        gcs.setenv("STORAGE_EMULATOR_HOST", proxy.url)
        yield Shop(f"gs://{gcs_bucket.name}/models", proxy, gcs_bucket.put, gcs_bucket.delete)


@pytest.fixture
def azure_shop(azure: pytest.MonkeyPatch, azurite: str, azure_container: Any) -> Iterator[Shop]:
    with Proxy(azurite, kind=azure_kind) as proxy:
        azure.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(proxy.url))
        yield Shop(f"{azure_container.url}/models", proxy, azure_container.put, azure_container.delete)


@pytest.fixture(params=["s3", "gcs", "azure"])
def shop(request: pytest.FixtureRequest) -> Shop:
    """A repository in each of the stores, empty."""
    found: Shop = request.getfixturevalue(f"{request.param}_shop")
    return found


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch) -> News:
    made = News()
    monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("news", made)))
    return made


Start = Callable[..., moorage.Server]


@pytest.fixture
def start(shop: Shop, news: News) -> Iterator[Start]:
    """Starts a server of the repository; the options are those of `moorage serve`."""
    servers: list[moorage.Server] = []

    def make(**options: Any) -> moorage.Server:
        servers.append(moorage.Server(model_repository=shop.url, **options))
        return servers[-1].start()

    yield make
    for server in servers:
        server.close()


def ask(server: moorage.Server, name: str = "m") -> float:
    return float(server.infer(name, {"X": X})["Y"][0])


def listings(proxy: Proxy) -> int:
    return proxy.counts().get("list", 0)
