"""Copies of remote models: what is brought, what is told, and that nothing is left."""

from __future__ import annotations

import errno
import shutil
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from moorage._storage import Cache, Copies, LocalStorage, Scratch, Wanted
from moorage._storage.progress import LogReporter, Pace
from moorage.errors import Cancelled, StorageError
from moorage.storage import Entry
from moorage.testing import RemoteStore

FILES = {"1/model": b"weights" * 100, "1/deep/er/part": b"part", "config.pbtxt": b"max_batch_size: 8", "warmup/data": b"0"}


@pytest.fixture
def store(tmp_path: Path) -> RemoteStore:
    made = RemoteStore(tmp_path / "remote", chunk=100)
    made.repository.add("m", {**FILES, "2/model": b"another version"})
    return made


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    (tmp_path / "temporary").mkdir()
    return Scratch(tmp_path / "temporary")


def listed(store: RemoteStore, folder: str = "m", version: int = 1) -> Wanted:
    storage = store.storage()
    entries = [entry._replace(path=entry.path.removeprefix(f"{folder}/")) for entry in storage.list(store.url)]
    own = [entry for entry in entries if entry.path.partition("/")[0] in (str(version), "config.pbtxt", "warmup")]
    store.counts.clear()
    return Wanted("m", storage, store.url, folder, version, own)


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def left(scratch: Scratch) -> list[str]:
    return sorted(path.name for path in scratch.path.iterdir())


def test_the_files_of_the_version_and_those_of_all_are_brought(store: RemoteStore, scratch: Scratch) -> None:
    copy = Copies(scratch).obtain(listed(store))
    assert files(copy.path) == FILES
    assert copy.path.name == "m"
    assert copy.path.is_relative_to(scratch.path)
    assert store.counts == {"get": 10}, "each part once, and no listing"
    copy.close()
    copy.close()
    assert left(scratch) == []


def test_without_sums_the_store_is_listed_once_more(store: RemoteStore, scratch: Scratch) -> None:
    store.sums = False
    Copies(scratch).obtain(listed(store))
    assert store.counts["list"] == 1


def test_every_copy_is_a_private_one(store: RemoteStore, scratch: Scratch, tmp_path: Path) -> None:
    copies = Copies(scratch, cache=Cache(tmp_path / "cache", 10_000))
    wanted = listed(store)
    one, two = copies.obtain(wanted), copies.obtain(wanted)
    (one.path / "1" / "model").write_bytes(b"changed")
    one.close()
    assert files(two.path) == FILES
    assert files(copies.obtain(wanted).path) == FILES
    assert store.counts["get"] == 10


def test_a_version_without_files_has_a_folder(scratch: Scratch, store: RemoteStore) -> None:
    copy = Copies(scratch).obtain(evolve(listed(store), version=7, entries=()))
    assert (copy.path / "7").is_dir()


def test_everything_goes_at_the_end(store: RemoteStore, scratch: Scratch, tmp_path: Path) -> None:
    copies = Copies(scratch, cache=Cache(tmp_path / "cache", 10_000))
    copies.obtain(listed(store))
    copies.close()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert list((tmp_path / "cache" / "servers").iterdir()) == []
    assert len(list((tmp_path / "cache" / "entries").iterdir())) == len(FILES)


def test_copies_go_where_the_variable_of_the_storage_says(tmp_path: Path, scratch: Scratch) -> None:
    (tmp_path / "mount").mkdir()
    store = RemoteStore(tmp_path / "remote", mount_variable="FAKE_MOUNT")
    store.repository.add("m", FILES)
    with closing(Copies(scratch, mounts={"FAKE_MOUNT": Scratch(tmp_path / "mount")})) as copies:
        assert copies.obtain(listed(store)).path.is_relative_to(tmp_path / "mount")
    assert list((tmp_path / "mount").iterdir()) == []


class TestFailures:
    @pytest.mark.parametrize("cached", [False, True])
    def test_an_error_names_model_file_and_store_and_leaves_nothing(
        self, store: RemoteStore, scratch: Scratch, tmp_path: Path, cached: bool
    ) -> None:
        def fail(kind: str, path: str) -> None:
            if path == "m/1/deep/er/part":
                raise ConnectionError("reset by peer")

        store.meddle = fail
        cache = Cache(tmp_path / "cache", 10_000) if cached else None
        with pytest.raises(StorageError) as caught:
            Copies(scratch, cache=cache).obtain(listed(store))
        for part in ("model 'm' version 1", "m/1/deep/er/part", "fake://bucket", "reset by peer"):
            assert part in str(caught.value)
        assert left(scratch) == []

    @pytest.mark.parametrize("cached", [False, True])
    def test_a_file_that_arrives_damaged_is_neither_loaded_nor_kept(
        self, store: RemoteStore, scratch: Scratch, tmp_path: Path, cached: bool
    ) -> None:
        store.spoil = lambda path, content: content.replace(b"w", b"v")
        cache = Cache(tmp_path / "cache", 10_000) if cached else None
        with pytest.raises(StorageError, match="'m/1/model'"):
            Copies(scratch, cache=cache).obtain(listed(store))
        store.spoil = lambda path, content: content
        assert files(Copies(scratch, cache=cache).obtain(listed(store)).path) == FILES

    def test_an_object_that_has_changed_since_it_was_listed(self, store: RemoteStore, scratch: Scratch) -> None:
        store.sums = False
        wanted = listed(store)
        store.put("m/1/model", FILES["1/model"].replace(b"w", b"v"))
        with pytest.raises(StorageError, match="'m/1/model' has changed while it was downloaded"):
            Copies(scratch).obtain(wanted)

    def test_too_little_room_is_known_before(
        self, store: RemoteStore, scratch: Scratch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usage = shutil.disk_usage(scratch.parent)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=500))
        with pytest.raises(StorageError) as caught:
            Copies(scratch).obtain(listed(store))
        assert str(caught.value) == (
            f"model 'm' version 1 of fake://bucket needs 722 bytes in {scratch.parent}, where 500 bytes are free: "
            "make room, or set TMPDIR to a folder on a larger disk"
        )
        assert store.counts == {}
        assert left(scratch) == []

    def test_a_disk_that_fills_up_meanwhile(self, store: RemoteStore, tmp_path: Path, scratch: Scratch) -> None:
        def full(kind: str, path: str) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        store.meddle = full
        wanted = listed_with(store, tmp_path)
        (tmp_path / "mount").mkdir()
        with pytest.raises(StorageError, match=r"needs 722 bytes in .*/mount, .* or set FAKE_MOUNT to a folder on a larger"):
            Copies(scratch, mounts={"FAKE_MOUNT": Scratch(tmp_path / "mount")}).obtain(wanted)

    def test_an_error_of_a_storage_that_translates_none(self, scratch: Scratch, store: RemoteStore) -> None:
        class Careless(LocalStorage):
            def download(self, *_: object) -> None:
                raise ZeroDivisionError("oops")

        with pytest.raises(StorageError, match="Careless failed: ZeroDivisionError: oops"):
            Copies(scratch).obtain(evolve(listed(store), storage=Careless()))

    def test_a_storage_that_does_not_bring_everything(self, scratch: Scratch, store: RemoteStore) -> None:
        class Careless(LocalStorage):
            def download(self, *_: object) -> None:
                return

        with pytest.raises(StorageError, match=r"'m/1/deep/er/part' has come with 0 bytes, not the 4"):
            Copies(scratch).obtain(evolve(listed(store), storage=Careless()))

    @pytest.mark.parametrize("path", ["../../escape", "/etc/passwd", "1//x", "1/./x", "1/\0"])
    def test_paths_that_lead_elsewhere(self, scratch: Scratch, store: RemoteStore, path: str) -> None:
        with pytest.raises(StorageError, match="no file of this machine can be called"):
            Copies(scratch).obtain(evolve(listed(store), entries=(Entry(path, 0, ""),)))

    def test_a_file_that_is_a_folder_too(self, scratch: Scratch, store: RemoteStore) -> None:
        with pytest.raises(StorageError, match=r"'m/1/a' is a file, and a folder, too, as there is 'm/1/a/b/c'"):
            Copies(scratch).obtain(evolve(listed(store), entries=(Entry("1/a/b/c", 0, ""), Entry("1/a", 0, ""))))

    @pytest.mark.parametrize("cached", [False, True])
    def test_a_server_that_ends_waits_for_no_download(
        self, store: RemoteStore, scratch: Scratch, tmp_path: Path, cached: bool
    ) -> None:
        asked, go = threading.Event(), threading.Event()

        def wait(kind: str, path: str) -> None:
            asked.set()
            assert go.wait(20)

        store.meddle = wait
        copies = Copies(scratch, cache=Cache(tmp_path / "cache", 10_000) if cached else None)
        wanted = listed_with(store, tmp_path)
        with ThreadPoolExecutor(1) as thread:
            loading = thread.submit(copies.obtain, wanted)
            assert asked.wait(20)
            copies.stop()
            with pytest.raises(Cancelled):
                loading.result(20)
            go.set()
        assert not [name for name in left(scratch) if name.startswith("copy")]
        with pytest.raises(Cancelled):
            copies.obtain(wanted)


def listed_with(store: RemoteStore, tmp_path: Path) -> Wanted:
    """What is listed of a store that shall fail afterwards, under a storage that has a variable."""
    calm = RemoteStore(tmp_path / "remote", mount_variable="FAKE_MOUNT", chunk=100)
    wanted = listed(calm)
    calm.meddle, calm.counts = store.meddle, store.counts
    return wanted


class TestSmallFiles:
    def read(self, copies: Copies, store: RemoteStore, path: str = "m/config.pbtxt") -> bytes:
        storage = store.storage()
        (entry,) = [entry for entry in storage.list(store.url) if entry.path == path]
        return copies.read(storage, store.url, entry, lambda: storage.read(store.url, path))

    def test_they_are_read_once_until_they_change(self, store: RemoteStore, scratch: Scratch) -> None:
        copies = Copies(scratch)
        for content, reads in ((b"max_batch_size: 8", 1), (b"max_batch_size: 8", 1), (b"max_batch_size: 9", 2)):
            store.put("m/config.pbtxt", content)
            assert self.read(copies, store) == content
            assert store.counts["read"] == reads

    def test_with_a_cache_a_restart_reads_none(self, store: RemoteStore, scratch: Scratch, tmp_path: Path) -> None:
        for _ in range(2):
            copies = Copies(Scratch(scratch.parent), cache=Cache(tmp_path / "cache", 10_000))
            assert self.read(copies, store) == FILES["config.pbtxt"]
            assert left(copies.scratch) == []
            copies.close()
        assert store.counts["read"] == 1

    @pytest.mark.parametrize("content", [b"longer than what was listed", b"max_batch_size: 9"])
    def test_what_changes_between_listing_and_reading_is_not_kept(
        self, store: RemoteStore, scratch: Scratch, tmp_path: Path, content: bytes
    ) -> None:
        cache = Cache(tmp_path / "cache", 10_000)
        store.spoil = lambda path, _: content
        assert self.read(Copies(scratch, cache=cache), store) == content
        store.spoil = lambda path, true: true
        assert self.read(Copies(scratch, cache=cache), store) == FILES["config.pbtxt"]

    def test_those_on_this_machine_are_always_read(self, tmp_path: Path, scratch: Scratch) -> None:
        contents = iter((b"one", b"two"))
        copies = Copies(scratch)
        for expected in (b"one", b"two"):
            assert copies.read(LocalStorage(), "r", Entry("f", 3, "same"), lambda: next(contents)) == expected


class TestProgress:
    def test_the_log_tells_beginning_and_end(
        self, store: RemoteStore, scratch: Scratch, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "moorage.storage")
        Copies(scratch, reporter=LogReporter()).obtain(listed(store))
        began, ended = (record.getMessage() for record in caplog.records)
        assert began == "downloading model=m version=1 size=722 bytes source=fake://bucket/m"
        assert ended.startswith("downloaded model=m version=1 size=722 bytes seconds=")
        assert ended.endswith(("B/s", "bytes/s"))

    def test_what_is_in_the_cache_is_told_as_well(
        self, store: RemoteStore, scratch: Scratch, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "moorage.storage")
        copies = Copies(scratch, cache=Cache(tmp_path / "cache", 10_000))
        copies.obtain(listed(store))
        caplog.clear()
        copies.obtain(listed(store))
        assert caplog.messages == ["taken from the model cache model=m version=1 size=722 bytes"]

    @pytest.mark.parametrize(
        "arrivals, told",
        [
            ([(0.5, 30), (1.1, 30), (1.2, 30)], [60]),
            ([(2, 5), (4, 4), (5, 1), (14, 1), (15.1, 1), (16, 88)], [10, 12]),
            ([(100, 100)], []),
        ],
        ids=["quick", "slow", "at once"],
    )
    def test_a_line_a_tenth_or_ten_seconds(
        self, monkeypatch: pytest.MonkeyPatch, arrivals: Sequence[tuple[float, int]], told: list[int]
    ) -> None:
        now = [0.0]
        monkeypatch.setattr(time, "monotonic", lambda: now[0])
        pace, seen = Pace(100), []
        for moment, count in arrivals:
            now[0] = moment
            seen.append(pace.arrived(count))
        assert [done for done in seen if done] == told
