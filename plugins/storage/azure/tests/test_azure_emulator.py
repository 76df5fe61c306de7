"""Listings and downloads against an emulator, through a proxy that breaks things."""

from __future__ import annotations

import gzip
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from azure.storage.blob import BlobBlock, BlobType, ContentSettings, generate_container_sas

from emulators.azure import ACCOUNT, INSTALL_LIMIT, KEY, Container, connection_string
from emulators.proxy import ALWAYS, Fault, Proxy, containing, of_kind
from moorage.errors import StorageError
from moorage.storage import UNREADABLE
from moorage_azure.storage import AzureStorage

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(INSTALL_LIMIT + 60), pytest.mark.usefixtures("reached")]


def listed(storage: AzureStorage, url: str) -> list[str]:
    return sorted(entry.path for entry in storage.list(url))


def test_one_request_a_listing(storage: AzureStorage, container: Container, proxy: Proxy) -> None:
    container.fill({f"models/m{number}/1/model.onnx": b"x" for number in range(30)})
    for _ in range(3):
        assert len(storage.list(f"{container.url}/models")) == 30
    assert proxy.counts() == {"list": 3}


def test_an_empty_container_is_one_request_too(storage: AzureStorage, container: Container, proxy: Proxy) -> None:
    assert storage.list(container.url) == ()
    assert proxy.counts() == {"list": 1}


@pytest.mark.parametrize(
    "form", ["as://{account}/{name}", "az://{name}", "as://{proxy}/{account}/{name}", "abfss://{name}@{account}"]
)
def test_each_form_of_a_url_leads_there(form: str, storage: AzureStorage, container: Container, proxy: Proxy) -> None:
    container.put("m/1/model.onnx", b"x")
    url = form.format(account=ACCOUNT, name=container.name, proxy=proxy.url.removeprefix("http://"))
    assert listed(storage, url) == ["m/1/model.onnx"]
    assert proxy.counts() == {"list": 1}


def test_what_shows_folders_is_no_file(storage: AzureStorage, container: Container) -> None:
    container.put("models/")
    container.put("models/m/1/")
    container.put("models/m/2", metadata={"hdi_isfolder": "true"})
    container.put("models/m/3", metadata={"Hdi_isfolder": "true"})
    container.put("models/m/2/model.onnx", b"x")
    container.put("models/m//1/model.onnx", b"skipped")
    assert listed(storage, f"{container.url}/models") == ["m/2/model.onnx"]


def test_names_that_urls_give_a_meaning(storage: AzureStorage, container: Container, tmp_path: Path) -> None:
    names = ["m/1/a?b", "m/1/a#b", "m/1/a%20b", "m/1/a b", "m/1/50%", "m/1/a@b:c", "m/1/ä+&=;"]
    container.fill({name: name.encode() for name in names})
    assert listed(storage, container.url) == sorted(names)
    assert [storage.read(container.url, name) for name in names] == [name.encode() for name in names]
    storage.download(container.url, storage.list(container.url), tmp_path)
    assert [(tmp_path / name).read_bytes() for name in names] == [name.encode() for name in names]


def test_compressed_files_come_as_they_are_stored(storage: AzureStorage, container: Container, tmp_path: Path) -> None:
    stored = gzip.compress(b"content" * 1000)
    container.put("m/1/weights.gz", stored, content_settings=ContentSettings(content_encoding="gzip"))
    storage.download(container.url, storage.list(container.url), tmp_path)
    assert (tmp_path / "m/1/weights.gz").read_bytes() == storage.read(container.url, "m/1/weights.gz") == stored


def test_what_is_archived_stops_nothing_but_its_model(storage: AzureStorage, container: Container) -> None:
    container.fill({"m/1/a": b"x", "n/1/a": b"x"})
    container.client.get_blob_client("m/1/a").set_standard_blob_tier("Archive")
    found = {entry.path: entry.fingerprint for entry in storage.list(container.url)}
    assert found["m/1/a"].startswith(f"{UNREADABLE}it is in the archive tier")
    assert not found["n/1/a"].startswith(UNREADABLE)


def test_sums_are_told_where_azure_has_them(storage: AzureStorage, container: Container) -> None:
    container.put("m/1/whole", b"abc")
    blocks = container.client.get_blob_client("m/1/blocks")
    blocks.stage_block("AAAA", b"abc")
    blocks.commit_block_list([BlobBlock("AAAA")])
    container.put("m/1/appended", b"abc", blob_type=BlobType.APPENDBLOB)
    sums = {entry.path: entry.checksum for entry in storage.list(container.url)}
    assert sums == {"m/1/whole": "md5:900150983cd24fb0d6963f7d28e17f72", "m/1/blocks": "", "m/1/appended": ""}


@pytest.mark.parametrize("metadata", [True, False], ids=["with sums", "without"])
def test_what_changes_during_a_download_is_found_out(
    metadata: bool, storage: AzureStorage, container: Container, proxy: Proxy, tmp_path: Path
) -> None:
    """Although the size is the same, and the first half has been read before."""
    container.put("m/1/model.bin", b"old!" * (1 << 20) * 2)
    if not metadata:
        container.client.get_blob_client("m/1/model.bin").set_http_headers(None)
    entries = storage.list(container.url)
    assert bool(entries[0].checksum) is metadata
    storage.download(container.url, entries, tmp_path)
    container.put("m/1/model.bin", b"new!" * (1 << 20) * 2)
    proxy.reset()
    with pytest.raises(StorageError, match=r"model.bin: it has changed since it was listed"):
        storage.download(container.url, entries, tmp_path)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(of_kind("get"), status=500, times=3),
        Fault(of_kind("get"), status=503, headers={"x-ms-error-code": "ServerBusy"}, times=3),
        Fault(of_kind("get"), drop=True, times=3),
        Fault(of_kind("get"), cut_after=1000, times=1),
        Fault(of_kind("get"), truncate_to=1000, times=2),
        Fault(of_kind("list"), status=500, times=2),
        Fault(of_kind("list"), cut_after=10, times=1),
    ],
    ids=["500", "busy", "dropped", "cut", "truncated", "list 500", "list cut"],
)
def test_what_passes_harms_no_download(
    fault: Fault, storage: AzureStorage, container: Container, proxy: Proxy, tmp_path: Path
) -> None:
    contents = {f"m/1/{number}": Random(number).randbytes(5000) for number in range(5)}
    contents["m/1/large"] = Random(7).randbytes(9 << 20)
    container.fill(contents)
    proxy.faults.append(fault)
    storage.download(container.url, storage.list(container.url), tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents


def test_damage_is_found_out(storage: AzureStorage, container: Container, proxy: Proxy, tmp_path: Path) -> None:
    container.put("m/1/model.bin", b"content")
    proxy.faults.append(Fault(of_kind("get"), damage=True, times=ALWAYS))
    with pytest.raises(StorageError, match="md5 sum differs"):
        storage.download(container.url, storage.list(container.url), tmp_path)


def test_one_file_that_is_refused_is_named(storage: AzureStorage, container: Container, proxy: Proxy, tmp_path: Path) -> None:
    container.fill({"m/1/a": b"x", "m/1/b": b"x"})
    proxy.faults.append(
        Fault(containing("m/1/b"), status=403, headers={"x-ms-error-code": "AuthorizationFailure"}, times=ALWAYS)
    )
    with pytest.raises(StorageError, match=r"file m/1/b: .*was refused"):
        storage.download(container.url, storage.list(container.url), tmp_path)


def test_a_container_that_goes_away_is_not_empty(storage: AzureStorage, container: Container) -> None:
    container.put("m/1/model.bin", b"x")
    assert storage.list(container.url)
    container.client.delete_container()
    with pytest.raises(StorageError, match=f"container '{container.name}' of account '{ACCOUNT}' does not exist"):
        storage.list(container.url)
    with pytest.raises(StorageError):
        storage.list(f"{container.url}/deeper")


def test_a_wrong_key(storage: AzureStorage, container: Container, proxy: Proxy, azure: pytest.MonkeyPatch) -> None:
    azure.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(proxy.url, "d3Jvbmc="))
    with pytest.raises(StorageError, match="AccountKey in AZURE_STORAGE_CONNECTION_STRING does not open account"):
        storage.list(container.url)
    assert proxy.counts() == {"list": 1}


def test_a_private_container_without_credentials(
    storage: AzureStorage, container: Container, proxy: Proxy, azure: pytest.MonkeyPatch
) -> None:
    azure.delenv("AZURE_STORAGE_CONNECTION_STRING")
    with pytest.raises(StorageError, match="not public, and it was read without credentials"):
        storage.list(f"as://{proxy.url}/{ACCOUNT}/{container.name}")


def test_a_public_container_without_credentials(
    storage: AzureStorage, container: Container, proxy: Proxy, azure: pytest.MonkeyPatch
) -> None:
    azure.delenv("AZURE_STORAGE_CONNECTION_STRING")
    container.put("m/1/model.bin", b"x")
    container.client.set_container_access_policy({}, public_access="container")
    url = f"as://{proxy.url}/{ACCOUNT}/{container.name}"
    assert listed(storage, url) == ["m/1/model.bin"]
    assert storage.read(url, "m/1/model.bin") == b"x"


@pytest.mark.parametrize("permissions, told", [("rl", ""), ("r", "make a SAS token"), ("l", "make a SAS token")])
def test_a_token(
    permissions: str, told: str, storage: AzureStorage, container: Container, proxy: Proxy, azure: pytest.MonkeyPatch
) -> None:
    container.put("m/1/model.bin", b"x")
    soon = datetime.now(UTC) + timedelta(hours=1)
    token = generate_container_sas(ACCOUNT, container.name, account_key=KEY, permission=permissions, expiry=soon)
    azure.delenv("AZURE_STORAGE_CONNECTION_STRING")
    azure.setenv("AZURE_STORAGE_SAS_TOKEN", token)
    url = f"as://{proxy.url}/{ACCOUNT}/{container.name}"

    def use() -> None:
        storage.list(url)
        storage.read(url, "m/1/model.bin")

    if not told:
        use()
        return
    with pytest.raises(StorageError, match=told):
        use()


MEMORY = """
import re, sys
from pathlib import Path
from moorage_azure.storage import AzureStorage

def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) >> 10

storage, url = AzureStorage(), sys.argv[1]
storage.download(url, [entry for entry in storage.list(url) if entry.size < 1000], Path(sys.argv[2]))
before = peak()
storage.download(url, storage.list(url), Path(sys.argv[2]))
storage.close()
print(peak() - before)
"""


def test_a_large_repository_takes_little_memory(
    container: Container, azurite: str, azure: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """50 small files and one of 200 MB: what comes is written at once."""
    azure.setenv("AZURE_STORAGE_CONNECTION_STRING", connection_string(azurite))
    contents = {f"m/1/{number}": str(number).encode() for number in range(50)}
    large = Random(3).randbytes(1 << 20) * 200
    container.fill(contents)
    container.put("m/1/large", large, max_concurrency=2)
    command = [sys.executable, "-c", MEMORY, container.url, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert int(done.stdout) < 110, f"{done.stdout.strip()} MiB more"
    assert (tmp_path / "m/1/large").read_bytes() == large
    assert {name: (tmp_path / name).read_bytes() for name in contents} == contents
