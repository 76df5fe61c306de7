"""Repositories in an emulator: how much is asked of it, what is brought from it, and what breaks on the way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from emulators.gcs import Bucket
from emulators.proxy import ALWAYS, Fault, Proxy, of_kind
from moorage.errors import StorageError
from moorage.storage import UNREADABLE, Entry
from moorage_gcs.storage import GcsStorage

pytestmark = [pytest.mark.heavy, pytest.mark.usefixtures("reached")]
MIB = 1 << 20


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_a_look_is_one_listing(bucket: Bucket, proxy: Proxy) -> None:
    bucket.fill({f"models/m{number}/1/model.bin": b"x" for number in range(10)})
    storage = GcsStorage()
    for _ in range(3):
        assert len(storage.list(f"{bucket.url}/models")) == 10
    assert proxy.counts() == {"list": 3}


def test_nothing_is_listed_that_only_begins_alike(bucket: Bucket, proxy: Proxy) -> None:
    bucket.put("models-2/m/1/model.bin", b"x")
    assert GcsStorage().list(f"{bucket.url}/models") == ()
    assert proxy.counts()["list"] == 2
    assert all("prefix=models/&" in f"{unquote(seen.target)}&" for seen in proxy.seen if seen.kind == "list")


def test_long_listings_come_in_pages_and_one_that_fails_is_not_the_end(bucket: Bucket, proxy: Proxy) -> None:
    bucket.fill({f"m/1/{number:04}": b"" for number in range(1001)})
    storage = GcsStorage()
    assert len(storage.list(bucket.url)) == 1001
    assert proxy.counts() == {"list": 2}
    proxy.faults.append(Fault(of_kind("list"), skip=1, times=ALWAYS, status=503))
    with pytest.raises(StorageError, match="at fault"):
        storage.list(bucket.url)


def test_only_objects_are_asked_for(bucket: Bucket, proxy: Proxy, target: Path) -> None:
    bucket.put("models/m/1/model.bin", b"content")
    storage, url = GcsStorage(), f"{bucket.url}/models"
    storage.read(url, "m/1/model.bin")
    storage.download(url, storage.list(url), target)
    storage.list(f"{bucket.url}/nothing/here")
    assert set(proxy.counts()) == {"list", "get", f"GET /storage/v1/b/{bucket.name}/o/nothing%2Fhere"}


def test_markers_and_odd_names_are_left_out(bucket: Bucket, caplog: pytest.LogCaptureFixture) -> None:
    bucket.fill({"models/": b"", "models/m/": b"", "models/m/1/": b"", "models/m//x": b"x", "models/m/1/model.bin": b"x"})
    assert [entry.path for entry in GcsStorage().list(f"{bucket.url}/models")] == ["m/1/model.bin"]
    assert "'m//x' was skipped" in caplog.text


def test_the_whole_bucket_is_a_repository(bucket: Bucket) -> None:
    bucket.put("m/1/model.bin", b"x")
    assert [entry.path for entry in GcsStorage().list(bucket.url)] == ["m/1/model.bin"]
    assert GcsStorage().read(bucket.url, "m/1/model.bin") == b"x"


def test_compressed_objects_are_named(bucket: Bucket) -> None:
    bucket.put("m/1/model.bin", b"x", contentEncoding="gzip")
    (entry,) = GcsStorage().list(bucket.url)
    assert entry.fingerprint.startswith(f"{UNREADABLE}it is stored with Content-Encoding gzip")


def test_composite_objects_are_checked(bucket: Bucket, proxy: Proxy, target: Path) -> None:
    bucket.fill({"m/1/a": b"first", "m/1/b": b"second"})
    parts = {"kind": "storage#composeRequest", "sourceObjects": [{"name": "m/1/a"}, {"name": "m/1/b"}], "destination": {}}
    bucket.client.post(f"/storage/v1/b/{bucket.name}/o/m%2F1%2Fwhole/compose", json=parts).raise_for_status()
    whole = next(entry for entry in GcsStorage().list(bucket.url) if entry.path == "m/1/whole")
    assert whole.checksum.startswith("crc32c:")
    GcsStorage().download(bucket.url, [whole], target)
    assert (target / "m/1/whole").read_bytes() == b"firstsecond"
    proxy.faults.append(Fault(of_kind("get"), damage=True))
    with pytest.raises(StorageError, match="'m/1/whole' is not what was listed: its crc32c sum differs"):
        GcsStorage().download(bucket.url, [whole], target)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"status": 503}, id="fails"),
        pytest.param({"drop": True}, id="drops"),
        pytest.param({"cut_after": 100_000}, id="cut"),
        pytest.param({"truncate_to": 100_000}, id="truncated"),
        pytest.param({"truncate_to": 0}, id="empty"),
    ],
)
def test_what_breaks_on_the_way_is_brought_again(fault: dict[str, Any], bucket: Bucket, proxy: Proxy, target: Path) -> None:
    content = os.urandom(5 * MIB)
    bucket.put("m/1/model.bin", content)
    proxy.faults.append(Fault(of_kind("get"), times=2, **fault))
    arrived: list[int] = []
    GcsStorage().download(bucket.url, GcsStorage().list(bucket.url), target, arrived.append)
    assert (target / "m/1/model.bin").read_bytes() == content
    assert sum(arrived) == len(content)


def test_what_always_breaks_is_an_error(bucket: Bucket, proxy: Proxy, target: Path) -> None:
    bucket.put("m/1/model.bin", b"content")
    proxy.faults.append(Fault(of_kind("get"), times=ALWAYS, status=500))
    with pytest.raises(StorageError, match=r"file m/1/model\.bin: .* is at fault \(status 500\)"):
        GcsStorage().download(bucket.url, GcsStorage().list(bucket.url), target)


def test_a_file_that_is_replaced_during_a_download_is_no_mixture(bucket: Bucket, proxy: Proxy, target: Path) -> None:
    bucket.put("m/1/model.bin", os.urandom(24 * MIB))
    entries = GcsStorage().list(bucket.url)
    replaced, held = Event(), Fault(of_kind("get"), skip=1, times=ALWAYS, until=(until := Event()))
    proxy.faults.append(held)

    def replace(_: int) -> None:
        if not replaced.is_set():
            replaced.set()
            bucket.put("m/1/model.bin", os.urandom(24 * MIB))
            until.set()

    with pytest.raises(StorageError, match="it has been replaced or deleted since it was listed"):
        GcsStorage().download(bucket.url, entries, target, replace)


def test_many_small_files_and_a_large_one_in_little_memory(bucket: Bucket, proxy: Proxy, fake_gcs: str, target: Path) -> None:
    bucket.fill({f"m{number}/1/model.bin": b"%d" % number for number in range(50)})

    def content() -> Iterator[bytes]:
        for number in range(200):
            yield bytes([number]) * MIB

    query = {"uploadType": "media", "name": "large/1/model.bin"}
    httpx.post(
        f"{fake_gcs}/upload/storage/v1/b/{bucket.name}/o", params=query, content=content(), timeout=60
    ).raise_for_status()
    storage = GcsStorage()
    entries = storage.list(bucket.url)
    before, most = resident(), 0

    def watch(_: int) -> None:
        nonlocal most
        most = max(most, resident() - before)

    storage.download(bucket.url, entries, target, watch)
    assert proxy.counts() == {"list": 1, "get": 100}
    assert most < 124 * MIB
    with (target / "large/1/model.bin").open("rb") as file:
        assert all(file.read(MIB) == piece for piece in content())
    assert len(entries) == 51
    assert all((target / f"m{number}/1/model.bin").read_bytes() == b"%d" % number for number in range(50))


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_entries_carry_what_the_store_says(bucket: Bucket) -> None:
    bucket.put("m/1/model.bin", b"123456789")
    (entry,) = GcsStorage().list(bucket.url)
    assert entry == Entry("m/1/model.bin", 9, entry.fingerprint, checksum="crc32c:e3069283")
    assert entry.fingerprint.isdigit()
