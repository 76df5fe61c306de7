"""Repositories in an emulator of S3, with a network that fails in between."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from emulators.proxy import ALWAYS, Fault, Proxy, containing, of_kind
from emulators.s3 import Bucket, kind, made
from moorage.errors import StorageError
from moorage.storage import Entry
from moorage_s3.storage import S3Storage

pytestmark = pytest.mark.heavy

MB = 1 << 20


class Parts(S3Storage):
    """Takes large files in smaller parts than usual, so that the tests need not be that large."""

    chunk = 4 * MB


@pytest.fixture
def storage() -> Iterator[S3Storage]:
    made = Parts()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def surroundings(keys: pytest.MonkeyPatch) -> None:
    keys.setenv("AWS_MAX_ATTEMPTS", "2")


@pytest.fixture
def url(proxy: Proxy, bucket: Bucket) -> str:
    return f"s3://{proxy.url}/{bucket.name}/repo"


def listed(storage: S3Storage, url: str) -> dict[str, Entry]:
    return {entry.path: entry for entry in storage.list(url)}


def tree(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def content(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("form", ["s3://{server}/{bucket}", "s3://{server}/{bucket}/", "s3://{server}//{bucket}//"])
def test_a_repository_may_be_a_whole_bucket(storage: S3Storage, proxy: Proxy, bucket: Bucket, form: str) -> None:
    bucket.put("m/1/model.py", b"content")
    url = form.format(server=proxy.url, bucket=bucket.name)
    assert set(listed(storage, url)) == {"m/1/model.py"}
    assert storage.read(url, "m/1/model.py") == b"content"


def test_folders_in_folders_come_down_as_they_are(storage: S3Storage, url: str, bucket: Bucket, tmp_path: Path) -> None:
    files = {
        "m/1/model.savedmodel/variables/variables.index": b"index",
        "m/1/model.savedmodel/variables/variables.data-00000-of-00001": content(3 * MB),
        "m/1/model.savedmodel/saved_model.pb": b"graph",
        "m/1/model.savedmodel/assets/words": b"",
    }
    bucket.fill({f"repo/{path}": value for path, value in files.items()})
    entries = sorted(storage.list(url), key=lambda entry: entry.path[::-1])
    storage.download(url, entries, tmp_path)
    assert tree(tmp_path) == files


def test_markers_are_no_files_and_empty_parts_are_skipped(
    storage: S3Storage, url: str, bucket: Bucket, caplog: pytest.LogCaptureFixture
) -> None:
    for key in ("repo/", "repo/m/", "repo/m/1/", "repo/m//1/model.py", "repo//m/1/x", "repo/m/../x", "repo/m/1"):
        bucket.put(key)
    bucket.put("repo/m/1/model.py", b"content")
    for _ in range(3):
        assert set(listed(storage, url)) == {"m/1/model.py"}
    assert caplog.text.count("'m//1/model.py' was skipped") == 1
    assert caplog.text.count("'/m/1/x' was skipped") == 1


def test_a_poll_costs_one_request_for_each_page(storage: S3Storage, url: str, bucket: Bucket, proxy: Proxy) -> None:
    bucket.fill({f"repo/m{number}/1/model.py": b"x" for number in range(70)})
    first = storage.list(url)
    assert len(first) == 70
    assert proxy.counts() == {"list": 2}
    proxy.reset()
    assert all(storage.list(url) == first for _ in range(5))
    assert proxy.counts() == {"list": 10}


def test_an_empty_place_costs_little_and_a_missing_bucket_is_not_empty(
    storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket
) -> None:
    assert storage.list(url) == ()
    assert proxy.counts() == {"list": 2}
    with pytest.raises(StorageError, match=r"bucket 'no-such-bucket' at .* does not exist"):
        storage.list(f"s3://{proxy.url}/no-such-bucket")


def test_the_same_bytes_put_again_are_no_change(storage: S3Storage, url: str, bucket: Bucket) -> None:
    bucket.put("repo/m/1/x", b"same")
    before = listed(storage, url)
    bucket.put("repo/m/1/x", b"same")
    assert listed(storage, url) == before
    bucket.put("repo/m/1/x", b"diff")
    assert listed(storage, url)["m/1/x"].fingerprint != before["m/1/x"].fingerprint


def test_objects_in_parts_change_their_fingerprint(storage: S3Storage, url: str, bucket: Bucket, tmp_path: Path) -> None:
    def upload(seed: int) -> bytes:
        whole = content(6 * MB, seed)
        started = bucket.client.create_multipart_upload(Bucket=bucket.name, Key="repo/m/1/x")["UploadId"]
        parts = []
        for number, piece in enumerate((whole[: 5 * MB], whole[5 * MB :]), 1):
            made = bucket.client.upload_part(
                Bucket=bucket.name, Key="repo/m/1/x", UploadId=started, PartNumber=number, Body=piece
            )
            parts.append({"PartNumber": number, "ETag": made["ETag"]})
        bucket.client.complete_multipart_upload(
            Bucket=bucket.name, Key="repo/m/1/x", UploadId=started, MultipartUpload={"Parts": parts}
        )
        return whole

    upload(1)
    (first,) = storage.list(url)
    second = upload(2)
    (entry,) = storage.list(url)
    assert entry.fingerprint != first.fingerprint
    assert entry.fingerprint.endswith("-2")
    storage.download(url, [entry], tmp_path)
    assert tree(tmp_path) == {"m/1/x": second}
    with pytest.raises(StorageError, match="file m/1/x: it has changed since it was listed"):
        storage.download(url, [first], tmp_path)


LARGE = content(12 * MB, 2)


@pytest.fixture(scope="module")
def stored(moto: str) -> Bucket:
    """A bucket with a file that takes three requests."""
    bucket = made(moto)
    bucket.put("repo/m/1/large", LARGE)
    return bucket


@pytest.fixture
def large(stored: Bucket, proxy: Proxy) -> str:
    """The URL of the repository that holds it."""
    return f"s3://{proxy.url}/{stored.name}/repo"


FAULTS: Mapping[str, tuple[Mapping[str, Any], Mapping[str, int]]] = {
    "nothing": ({}, {"get": 3}),
    "errors of the server": ({"status": 500, "times": 2}, {"get": 5}),
    "too many requests": ({"status": 503, "times": 2}, {"get": 5}),
    "no answers": ({"drop": True, "times": 2}, {"get": 5}),
    "bodies that are cut": ({"cut_after": MB, "times": 3}, {"get": 6}),
    "bodies that are cut at once": ({"cut_after": 0, "times": 2}, {"get": 5}),
    "bodies that end early and look whole": ({"truncate_to": MB, "times": 3}, {"get": 6}),
    "slow answers": ({"delay": 0.05, "times": ALWAYS}, {"get": 3}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_downloads_go_on_after(name: str, storage: S3Storage, proxy: Proxy, large: str, tmp_path: Path) -> None:
    fault, requests = FAULTS[name]
    entries = storage.list(large)
    proxy.reset()
    if fault:
        proxy.faults.append(Fault(of_kind("get"), **fault))
    progress: list[int] = []
    storage.download(large, entries, tmp_path, progress.append)
    assert tree(tmp_path) == {"m/1/large": LARGE}
    assert proxy.counts() == requests
    assert sum(progress) == len(LARGE)


def test_requests_run_beside_each_other(storage: S3Storage, proxy: Proxy, large: str, tmp_path: Path) -> None:
    entries = storage.list(large)
    proxy.latency = 0.2
    storage.download(large, entries, tmp_path)
    assert proxy.most_at_once == 3


def test_a_store_that_stays_ill_ends_the_download(storage: S3Storage, proxy: Proxy, large: str, tmp_path: Path) -> None:
    entries = storage.list(large)
    proxy.faults.append(Fault(of_kind("get"), cut_after=0, times=ALWAYS))
    with pytest.raises(StorageError, match="file m/1/large: the store has broken off its answer"):
        storage.download(large, entries, tmp_path)


def test_listings_go_on_after_errors(storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket) -> None:
    bucket.fill({f"repo/m{number}/1/model.py": b"x" for number in range(70)})
    proxy.reset()
    proxy.faults += [Fault(containing("continuation-token"), status=503), Fault(of_kind("list"), drop=True)]
    assert len(storage.list(url)) == 70
    assert proxy.counts() == {"list": 4}, "no page was asked for twice that had come"


def test_a_listing_with_a_page_that_does_not_come_is_an_error(
    storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket
) -> None:
    bucket.fill({f"repo/m{number}/1/model.py": b"x" for number in range(70)})
    proxy.faults.append(Fault(containing("continuation-token"), status=500, times=ALWAYS))
    with pytest.raises(StorageError, match="HTTP 500"):
        storage.list(url)


def test_whoever_may_not_look_at_the_bucket_itself_needs_not(
    storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket, tmp_path: Path
) -> None:
    bucket.put("repo/m/1/x", b"content")
    proxy.faults.append(Fault(lambda seen: seen.kind not in ("list", "get"), status=403, times=ALWAYS))
    storage.download(url, storage.list(url), tmp_path)
    assert tree(tmp_path) == {"m/1/x": b"content"}
    assert proxy.counts() == {"list": 1, "get": 1}


def test_damage_on_a_way_without_tls_is_found(
    storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket, tmp_path: Path, keys: pytest.MonkeyPatch
) -> None:
    bucket.put("repo/m/1/x", content(100))
    entries = storage.list(url)
    proxy.faults.append(Fault(of_kind("get"), damage=True, times=ALWAYS))
    with pytest.raises(StorageError, match=r"'m/1/x' .* arrived damaged; the load can be tried again"):
        storage.download(url, entries, tmp_path)
    keys.setenv("MOORAGE_S3_CHECK_MD5", "false")
    storage.download(url, entries, tmp_path)


@pytest.mark.parametrize(
    "headers",
    [{"x-amz-server-side-encryption": "aws:kms"}, {"x-amz-server-side-encryption-customer-algorithm": "AES256"}],
    ids=["key of KMS", "key of the customer"],
)
def test_etags_of_objects_with_keys_of_their_own_are_no_sums(
    storage: S3Storage, url: str, proxy: Proxy, bucket: Bucket, tmp_path: Path, headers: dict[str, str]
) -> None:
    bucket.put("repo/m/1/x", content(100))
    proxy.faults.append(Fault(of_kind("get"), damage=True, headers=headers))
    storage.download(url, storage.list(url), tmp_path)
    assert set(tree(tmp_path)) == {"m/1/x"}


CHILD = """
import hashlib, json, pathlib, resource, sys
from moorage_s3.storage import S3Storage

url, folder = sys.argv[1], pathlib.Path(sys.argv[2])
S3Storage.chunk = 40 << 20  # the emulator reads the whole object for each request
storage = S3Storage()
entries = storage.list(url)
storage.download(url, [entry for entry in entries if entry.size < 1000], folder)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
storage.download(url, entries, folder)
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
storage.close()
sums = {entry.path: hashlib.md5((folder / entry.path).read_bytes()).hexdigest() for entry in entries}
print(json.dumps([sums, grown]))
"""


def test_a_repository_of_fifty_files_and_a_large_one_in_little_memory(moto: str, tmp_path: Path) -> None:
    bucket = made(moto)
    files = {f"m{number}/1/model.bin": content(900, number) for number in range(50)} | {"big/1/model.bin": content(24 * MB) * 4}
    bucket.fill(files)
    with Proxy(moto, kind=kind) as proxy:
        command = [sys.executable, "-W", "error", "-c", CHILD, f"s3://{proxy.url}/{bucket.name}", str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        assert done.returncode == 0, done.stderr
        sums, grown = json.loads(done.stdout)
        assert sums == {path: hashlib.md5(value).hexdigest() for path, value in files.items()}
        assert grown < 50 << 10, "kilobytes, for 96 MB"
        assert proxy.counts() == {"list": 1, "get": 50 + 50 + 3}
