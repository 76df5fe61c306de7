"""What is the same for every store behind fsspec: listings, names that can be no files, and what errors say."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tenacity import wait_none

from moorage.errors import InvalidArgument, StorageError
from moorage.storage import transfer as room
from moorage.storage.fsspec import FsspecStorage, Place

Files = Mapping[str, bytes]


class Store:
    """A file system as fsspec has them, with a failure for each of the next calls, if there is one."""

    def __init__(self, files: Files) -> None:
        self.files = dict(files)
        self.calls: list[str] = []
        self.failures: list[Exception] = []

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if self.failures:
            raise self.failures.pop(0)

    def find(self, root: str, *, detail: bool) -> Mapping[str, Mapping[str, Any]]:
        self._called("find")
        return {
            name: {"type": "file", "size": len(content), "ETag": f'"{hash(content)}"', "name": name}
            for name, content in self.files.items()
            if name.startswith(f"{root}/") or name == root
        }

    def ls(self, path: str, *, detail: bool) -> list[str]:
        self._called("ls")
        if path != "bkt":
            raise FileNotFoundError(path)
        return []

    def cat_file(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        self._called("cat")
        return self.files[name][start:end]


class Storage(FsspecStorage):
    schemes = ("test",)

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        self.connected: list[str] = []

    def connect(self, url: str) -> Place:
        self.connected.append(url)
        root = url.removeprefix("test://")
        return Place(self.store, root, root.partition("/")[0])

    def explain(self, error: Exception, url: str) -> str:
        return "the moon is in the wrong phase: wait" if isinstance(error, ArithmeticError) else ""


URL = "test://bkt/repo"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAUSES", wait_none())


@pytest.fixture
def store() -> Store:
    return Store({"bkt/repo/m/1/x": b"content", "bkt/repo/m/config.pbtxt": b"", "bkt/repo2/y": b"", "bkt/z": b""})


@pytest.fixture
def storage(store: Store) -> Iterator[Storage]:
    made = Storage(store)
    yield made
    made.close()


def paths(storage: Storage, url: str = URL) -> set[str]:
    return {entry.path for entry in storage.list(url)}


def test_a_listing_is_one_call(storage: Storage, store: Store) -> None:
    assert paths(storage) == {"m/1/x", "m/config.pbtxt"}
    assert storage.list(URL) == storage.list(URL)
    assert store.calls == ["find"] * 3
    assert storage.connected == [URL]


def test_a_fingerprint_tells_size_and_etag(storage: Storage, store: Store) -> None:
    before = {entry.path: entry for entry in storage.list(URL)}
    assert before["m/1/x"].fingerprint == f"7-{hash(b'content')}"
    store.files["bkt/repo/m/1/x"] = b"CONTENT"
    after = {entry.path: entry for entry in storage.list(URL)}
    assert after["m/1/x"].fingerprint != before["m/1/x"].fingerprint
    assert after["m/config.pbtxt"] == before["m/config.pbtxt"]


def test_empty_is_told_from_missing(storage: Storage, store: Store) -> None:
    assert storage.list("test://bkt/nothing") == ()
    assert store.calls == ["find", "ls"]
    with pytest.raises(
        StorageError, match="model repository test://gone/repo: it does not exist: create it or correct the URL"
    ):
        storage.list("test://gone/repo")
    with pytest.raises(StorageError, match="test://bkt/z is a file"):
        storage.list("test://bkt/z")


def test_that_there_is_nothing_is_told_once(storage: Storage, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.files["bkt/modles/"] = b""
    for _ in range(3):
        assert storage.list("test://bkt/modles") == ()
    (record,) = caplog.records
    assert record.getMessage().startswith("model repository test://bkt/modles: nothing lies below this path")


def test_markers_are_no_files(storage: Storage, store: Store, caplog: pytest.LogCaptureFixture) -> None:
    store.files |= {"bkt/repo": b"", "bkt/repo/": b"", "bkt/repo/m/": b"", "bkt/repo/m/1": b"", "bkt/repo/m": b""}
    assert paths(storage) == {"m/1/x", "m/config.pbtxt"}
    assert not caplog.text


@pytest.mark.parametrize("path", ["m//1/x", "/m/1/x", "m/../x", "./x", "m/1/./x", "m/1"])
def test_names_that_can_be_no_files_are_skipped_and_told_once(
    storage: Storage, store: Store, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    store.files[f"bkt/repo/{path}"] = b"content"
    for _ in range(3):
        assert paths(storage) == {"m/1/x", "m/config.pbtxt"}
    assert caplog.text.count(f"model repository {URL}: '{path}' was skipped") == 1


def test_listings_and_reads_are_tried_again(storage: Storage, store: Store) -> None:
    store.failures += [ConnectionResetError(), TimeoutError()]
    assert paths(storage) == {"m/1/x", "m/config.pbtxt"}
    store.failures += [ConnectionResetError()]
    assert storage.read(URL, "m/1/x") == b"content"


@pytest.mark.parametrize(
    "error, told",
    [
        (ZeroDivisionError("x"), "the moon is in the wrong phase: wait"),
        (FileNotFoundError("x"), "it does not exist: create it"),
        (PermissionError("x"), "access was refused: check the credentials"),
        (LookupError("of some kind"), "LookupError: of some kind"),
        (ConnectionResetError("gone"), "ConnectionResetError: gone"),
    ],
)
def test_errors_say_where_and_keep_their_cause(
    storage: Storage, store: Store, tmp_path: Path, error: Exception, told: str
) -> None:
    entries = storage.list(URL)
    store.failures += [error] * 50
    with pytest.raises(StorageError, match=f"^model repository {URL}: {told}") as caught:
        storage.list(URL)
    assert caught.value.__cause__ is error
    with pytest.raises(StorageError, match=f"^model repository {URL}, file m/1/x: {told}"):
        storage.read(URL, "m/1/x")
    with pytest.raises(StorageError, match=f"^model repository {URL}, file m/1/x: {told}"):
        storage.download(URL, entries, tmp_path)


def test_a_file_that_changes_under_way_is_not_taken(storage: Storage, store: Store, tmp_path: Path) -> None:
    entries = storage.list(URL)
    store.files["bkt/repo/m/1/x"] = b"CONTENT"
    with pytest.raises(StorageError, match="'m/1/x' has changed while it was downloaded"):
        storage.download(URL, entries, tmp_path)


def test_a_download_lists_once_more_and_reads_what_has_content(storage: Storage, store: Store, tmp_path: Path) -> None:
    entries = storage.list(URL)
    store.calls.clear()
    storage.download(URL, entries, tmp_path)
    assert sorted(store.calls) == ["cat", "find"]
    assert (tmp_path / "m/1/x").read_bytes() == b"content"
    assert (tmp_path / "m/config.pbtxt").read_bytes() == b""


def test_a_url_is_connected_once_however_many_ask(storage: Storage) -> None:
    start = threading.Barrier(8)

    def ask(_: int) -> set[str]:
        start.wait(10)
        return paths(storage)

    with ThreadPoolExecutor(8) as threads:
        assert all(found == {"m/1/x", "m/config.pbtxt"} for found in threads.map(ask, range(8)))
    assert storage.connected == [URL]


def test_a_failed_connection_is_tried_at_the_next_call(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "outdated", lambda *_: True)

    def refuse(self: Storage, url: str) -> Place:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "connect", refuse)
        with pytest.raises(StorageError, match="access was refused"):
            storage.list(URL)
    assert paths(storage) == {"m/1/x", "m/config.pbtxt"}


def test_what_is_used_up_is_connected_anew(storage: Storage, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Storage, "outdated", lambda _, error: isinstance(error, PermissionError))
    store.failures += [PermissionError(), LookupError()]
    for _ in range(2):
        with pytest.raises(StorageError):
            storage.list(URL)
    paths(storage)
    assert storage.connected == [URL] * 2


def test_errors_of_moorage_pass_as_they_are(storage: Storage, store: Store) -> None:
    store.failures.append(InvalidArgument("as it is"))
    with pytest.raises(InvalidArgument, match=r"^as it is$"):
        storage.list(URL)
