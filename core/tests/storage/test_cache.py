"""The cache of remote files: what is in it, what leaves it, and what becomes of it when things go wrong."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from moorage._storage import Cache, bytes_of
from moorage._storage.cache import Request
from moorage._storage.room import Kept, victims
from moorage._storage.sizes import shown
from moorage.errors import Cancelled, InvalidArgument, StorageError
from moorage.storage import Entry

URL = "s3://bucket/models"


class Store:
    """Brings files whose content follows from path and fingerprint, and counts."""

    def __init__(self) -> None:
        self.brought: list[str] = []

    def __call__(self, entries: Sequence[Entry], folder: Path) -> None:
        for entry in entries:
            self.brought.append(entry.path)
            (folder / entry.path).parent.mkdir(parents=True, exist_ok=True)
            (folder / entry.path).write_bytes(content(entry))


def content(entry: Entry) -> bytes:
    return f"{entry.path} {entry.fingerprint} ".encode().ljust(entry.size, b".")[: entry.size]


def entry(path: str, size: int = 100, fingerprint: str = "etag-1") -> Entry:
    return Entry(path, size, fingerprint)


def go_on() -> None:
    return


def request(*entries: Entry, go_on: Callable[[], None] = go_on) -> Request:
    return Request("model 'm' version 1", URL, entries, lambda one: one.path.rpartition("/")[0], go_on)


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "target").mkdir()
    return tmp_path / "target"


def cache_at(folder: Path, limit: int = 1000) -> Cache:
    return Cache(folder / "cache", limit)


def load(cache: Cache, store: Store, target: Path, *entries: Entry) -> list[str]:
    """As a model is loaded: its files must be there and right."""
    shutil.rmtree(target)
    target.mkdir()
    keys = cache.fill(request(*entries), target, store)
    for one in entries:
        assert (target / one.path).read_bytes() == content(one)
    return keys


def kept(folder: Path) -> dict[str, int]:
    """What a cache holds: origin to size."""
    found = {}
    for one in (folder / "cache" / "entries").iterdir():
        about = json.loads((one / "about.json").read_text())
        found[about["origin"].removeprefix(f"{URL}/")] = (one / "content").stat().st_size
    return found


class TestWhatIsKept:
    def test_what_has_not_changed_is_brought_once(self, tmp_path: Path, store: Store, target: Path) -> None:
        files = (entry("m/1/model"), entry("m/config.pbtxt", 10), entry("m/1/deep/er/empty", 0))
        for _ in range(3):
            cache = cache_at(tmp_path)
            cache.release(load(cache, store, target, *files))
            cache.close()
        assert sorted(store.brought) == sorted(one.path for one in files)
        assert kept(tmp_path) == {one.path: one.size for one in files}

    @pytest.mark.parametrize(
        "other", [entry("m/1/model", fingerprint="etag-2"), entry("m/1/model", 101), entry("m/2/model")], ids=str
    )
    def test_what_is_different_is_brought(self, tmp_path: Path, store: Store, target: Path, other: Entry) -> None:
        cache = cache_at(tmp_path)
        load(cache, store, target, entry("m/1/model"))
        load(cache, store, target, other)
        assert len(store.brought) == 2

    def test_the_same_path_of_another_repository_is_another_file(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path)
        load(cache, store, target, entry("m/1/model"))
        elsewhere = Request("m", "gs://bucket/models", [entry("m/1/model")], lambda one: "", go_on)
        cache.fill(elsewhere, target, store)
        assert len(store.brought) == 2

    @pytest.mark.parametrize("fingerprint", ["", "100"])
    def test_what_the_store_cannot_tell_from_its_successor_is_not_kept(
        self, tmp_path: Path, store: Store, target: Path, fingerprint: str
    ) -> None:
        cache = cache_at(tmp_path)
        for _ in range(2):
            load(cache, store, target, entry("m/1/model", fingerprint=fingerprint))
        assert len(store.brought) == 2
        assert kept(tmp_path) == {}

    def test_only_what_is_missing_is_brought(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path)
        load(cache, store, target, entry("m/1/model"), entry("m/labels"))
        load(cache, store, target, entry("m/2/model"), entry("m/labels"))
        assert store.brought == ["m/1/model", "m/labels", "m/2/model"]

    def test_the_loaded_files_are_copies(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path)
        load(cache, store, target, entry("m/1/model"))
        for file in (target / "m/1/model", next((tmp_path / "cache/entries").glob("*/content"))):
            file.write_bytes(b"x" * 100)
            load(cache, store, target, entry("m/1/model"))
        assert (target / "m/1/model").stat().st_nlink == 1

    def test_a_download_that_fails_leaves_nothing(self, tmp_path: Path, store: Store, target: Path) -> None:
        def fail(entries: Sequence[Entry], folder: Path) -> None:
            store(entries[:1], folder)
            raise StorageError("cut off")

        cache = cache_at(tmp_path, 200)
        with pytest.raises(StorageError, match="cut off"):
            cache.fill(request(entry("m/1/a"), entry("m/1/b")), target, fail)
        assert kept(tmp_path) == {}
        load(cache, store, target, entry("n/1/a"), entry("n/1/b"))  # nothing is pinned any more
        assert len(kept(tmp_path)) == 2


class TestRoom:
    def test_the_least_recently_used_goes_first(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path, 300)
        for name in "abcab":
            cache.release(load(cache, store, target, entry(name)))
        cache.release(load(cache, store, target, entry("d", 150)))
        assert kept(tmp_path) == {"b": 100, "d": 150}

    def test_what_was_loaded_until_now_was_used_until_now(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path, 200)
        long = load(cache, store, target, entry("long"))
        cache.release(load(cache, store, target, entry("short")))
        cache.release(long)
        cache.release(load(cache, store, target, entry("new")))
        assert kept(tmp_path) == {"long": 100, "new": 100}

    def test_what_is_loaded_stays_as_often_as_it_is(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path, 200)
        twice = [load(cache, store, target, entry("a")) for _ in range(2)]
        cache.release(twice[0])
        for name in "bcd":
            cache.release(load(cache, store, target, entry(name)))
        assert kept(tmp_path) == {"a": 100, "d": 100}
        cache.release(twice[1])
        for name in "ef":
            cache.release(load(cache, store, target, entry(name)))
        assert kept(tmp_path) == {"e": 100, "f": 100}

    def test_what_another_server_has_loaded_stays(self, tmp_path: Path, store: Store, target: Path) -> None:
        one, two = cache_at(tmp_path, 200), cache_at(tmp_path, 200)
        load(one, store, target, entry("a"))
        for name in "bc":
            two.release(load(two, store, target, entry(name)))
        assert kept(tmp_path) == {"a": 100, "c": 100}
        one.close()
        for name in "de":
            two.release(load(two, store, target, entry(name)))
        assert kept(tmp_path) == {"d": 100, "e": 100}

    def test_a_model_larger_than_the_cache_is_loaded_and_not_kept(
        self, tmp_path: Path, store: Store, target: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        cache = cache_at(tmp_path, 150)
        cache.release(load(cache, store, target, entry("small")))
        load(cache, store, target, entry("large", 100), entry("more", 51))
        assert kept(tmp_path) == {"small": 100}, "nothing had to go, as it would not have helped"
        assert "151 bytes are not kept in the model cache, which may hold 150 bytes" in caplog.text

    def test_a_cache_whose_models_are_all_loaded_keeps_no_more(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path, 150)
        load(cache, store, target, entry("a"))
        load(cache, store, target, entry("b"))
        assert kept(tmp_path) == {"a": 100}

    def test_a_full_disk_makes_the_cache_smaller(
        self, tmp_path: Path, store: Store, target: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        cache = cache_at(tmp_path, 10_000)
        for name in "abc":
            cache.release(load(cache, store, target, entry(name)))
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=150))  # of which the copy needs 100
        cache.release(load(cache, store, target, entry("d")))
        assert kept(tmp_path) == {"b": 100, "c": 100, "d": 100}

    @pytest.mark.parametrize(
        "limit, going",
        [(350, []), (349, ["old"]), (250, ["old"]), (249, ["old", "new"]), (150, ["old", "new"]), (149, None)],
    )
    def test_the_decision(self, limit: int, going: list[str] | None) -> None:
        entries = {"new": Kept(100, 2), "old": Kept(100, 1), "loaded": Kept(100, 0)}
        assert victims(entries, {"loaded": 100, "coming": 50}, limit) == going


class TestDamage:
    @pytest.mark.parametrize("damage", ["other bytes", "cut off", "no content", "no about", "no JSON", "empty folder"])
    def test_what_is_damaged_is_brought_again(self, tmp_path: Path, store: Store, target: Path, damage: str) -> None:
        cache = cache_at(tmp_path)
        cache.release(load(cache, store, target, entry("a")))
        (folder,) = (tmp_path / "cache" / "entries").iterdir()
        file, about = folder / "content", folder / "about.json"
        match damage:
            case "other bytes":
                file.write_bytes(file.read_bytes()[:-1] + b"!")
            case "cut off":
                file.write_bytes(file.read_bytes()[:-1])
            case "no content":
                file.unlink()
            case "no about":
                about.unlink()
            case "no JSON":
                about.write_text("{")
            case "empty folder":
                file.unlink()
                about.unlink()
        for _ in range(2):
            load(cache, store, target, entry("a"))
        assert store.brought == ["a", "a"]

    def test_foreign_files_are_no_entries(self, tmp_path: Path, store: Store, target: Path) -> None:
        cache = cache_at(tmp_path)
        (tmp_path / "cache" / "entries" / "README").write_text("")
        (tmp_path / "cache" / "servers" / "README").write_text("")
        load(cache, store, target, entry("a"))
        assert (tmp_path / "cache" / "entries" / "README").exists()

    def test_a_cache_that_is_deleted_under_a_server(
        self, tmp_path: Path, store: Store, target: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        cache = cache_at(tmp_path)
        keys = load(cache, store, target, entry("a"))
        shutil.rmtree(tmp_path / "cache")
        load(cache, store, target, entry("a"))
        assert "cannot be used" in caplog.text
        cache.release(keys)
        cache.close()

    @pytest.mark.parametrize("broken", ["clone", "checksum"])
    def test_a_disk_that_fails(
        self, tmp_path: Path, store: Store, target: Path, monkeypatch: pytest.MonkeyPatch, broken: str
    ) -> None:
        def fail(*_: object) -> None:
            raise OSError(errno.EIO, "bad disk")

        cache = cache_at(tmp_path)
        load(cache, store, target, entry("a"))
        with monkeypatch.context() as patch:
            patch.setattr(f"moorage._storage.shelf.{broken}", fail)
            load(cache, store, target, entry("a"), entry("b"))
        assert list(kept(tmp_path)) == ["a"]
        assert list((tmp_path / "cache" / "servers").glob("*/new*")) == []

    @pytest.mark.parametrize("stops", ["at once", "at its beginning", "halfway"])
    def test_without_the_kernels_copies(
        self, tmp_path: Path, store: Store, target: Path, monkeypatch: pytest.MonkeyPatch, stops: str
    ) -> None:
        def stopping(source: int, new: int, count: int) -> int:
            if stops == "at once":
                raise OSError(errno.EXDEV, "not here")
            done = os.lseek(source, 0, os.SEEK_CUR)
            return 0 if stops == "at its beginning" or done else os.write(new, os.read(source, 50))

        monkeypatch.setattr(os, "copy_file_range", stopping, raising=False)
        cache = cache_at(tmp_path)
        for _ in range(2):
            load(cache, store, target, entry("a"))
        assert store.brought == ["a"]


class TestFolder:
    def test_it_is_made(self, tmp_path: Path) -> None:
        Cache(tmp_path / "new" / "cache", 1).close()
        assert (
            (tmp_path / "new" / "cache" / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55")
        )

    def test_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(InvalidArgument, match=r"^--model-cache-dir=.*/file: it cannot be used: Not a directory"):
            Cache(tmp_path / "file", 1)

    def test_one_that_may_not_be_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(**where: Path) -> None:
            raise PermissionError(errno.EACCES, "Permission denied", str(where["dir"]))

        monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
        with pytest.raises(InvalidArgument, match=r"^--model-cache-dir=.*Permission denied \(.*servers\); give a folder"):
            Cache(tmp_path, 1)


class TestSizes:
    @pytest.mark.parametrize(
        "text, size",
        [
            ("0", 0),
            ("500", 500),
            ("500MB", 500_000_000),
            ("10GiB", 10 << 30),
            (" 1.5 kib ", 1536),
            ("2TB", 2 * 10**12),
            ("7b", 7),
        ],
    )
    def test_that_can_be_meant(self, text: str, size: int) -> None:
        assert bytes_of(text) == size

    @pytest.mark.parametrize("text", ["", "GB", "-1", "10G", "1e9", "ten", "1,5GB", "1 2", "٣", "inf"])
    def test_that_cannot(self, text: str) -> None:
        with pytest.raises(InvalidArgument, match=r"such as 500MB or 10GiB"):
            bytes_of(text)

    @pytest.mark.parametrize(
        "size, text",
        [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (123_456, "123 kB"),
            (999_999, "1.0 MB"),
            (5 * 10**15, "5000.0 TB"),
        ],
    )
    def test_as_people_read_them(self, size: int, text: str) -> None:
        assert shown(size) == text


SHARE = """
import sys, time
from pathlib import Path
from moorage._storage.cache import Cache, Request
from moorage.storage import Entry
folder, target = Path(sys.argv[1]), Path(sys.argv[2])
target.mkdir()

def bring(entries, where):
    for entry in entries:
        with (folder / "journal").open("a") as journal:
            journal.write(entry.path + "\\n")
        (where / entry.path).parent.mkdir(parents=True, exist_ok=True)
        (where / entry.path).write_bytes(b"x" * entry.size)
    if "hang" in sys.argv:
        print("bringing", flush=True)
        sys.stdin.read()

cache = Cache(folder / "cache", 1 << 20)
entries = [Entry(f"m/1/{number}", 1000, "etag") for number in range(20)]
print("ready", flush=True)
sys.stdin.readline()
cache.fill(Request("m", "s3://b", entries, lambda entry: "m/1", lambda: None), target, bring)
assert all((target / entry.path).stat().st_size == 1000 for entry in entries)
print("loaded", flush=True)
sys.stdin.read()
"""


class TestServersThatShare:
    def start(self, tmp_path: Path, name: str, *more: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SHARE, str(tmp_path), str(tmp_path / name), *more]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def says(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline().strip()

    def tell(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    def journal(self, tmp_path: Path) -> list[str]:
        return (tmp_path / "journal").read_text().split()

    def test_of_several_that_want_a_file_at_once_one_brings_it(self, tmp_path: Path) -> None:
        servers = [self.start(tmp_path, f"server-{number}") for number in range(3)]
        try:
            assert {self.says(server) for server in servers} == {"ready"}
            for server in servers:
                self.tell(server)
            assert {self.says(server) for server in servers} == {"loaded"}
        finally:
            for server in servers:
                server.communicate("")
        assert sorted(self.journal(tmp_path)) == sorted(f"m/1/{number}" for number in range(20))
        assert list((tmp_path / "cache" / "servers").iterdir()) == []

    def test_of_one_that_is_killed_while_it_brings_nothing_is_left(self, tmp_path: Path) -> None:
        killed, other = self.start(tmp_path, "killed", "hang"), self.start(tmp_path, "other")
        try:
            assert [self.says(killed), self.says(other)] == ["ready", "ready"]
            self.tell(killed)
            assert self.says(killed) == "bringing"
            self.tell(other)
            killed.kill()
            killed.wait()
            assert self.says(other) == "loaded"
        finally:
            for server in (killed, other):
                server.kill()
                server.communicate()
        assert len(self.journal(tmp_path)) == 40
        assert len(list((tmp_path / "cache" / "servers").iterdir())) > 1
        Cache(tmp_path / "cache", 1 << 20).close()
        assert list((tmp_path / "cache" / "servers").iterdir()) == []
        assert len(list((tmp_path / "cache" / "entries").iterdir())) == 20

    def test_threads_too(self, tmp_path: Path, store: Store) -> None:
        cache = cache_at(tmp_path)
        files = [entry(f"m/1/{number}", 10) for number in range(10)]

        def one(number: int) -> None:
            target = tmp_path / f"target-{number}"
            target.mkdir()
            load(cache, store, target, *files)

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(one, range(8)))
        assert sorted(store.brought) == sorted(one.path for one in files)

    def test_waiting_for_another_can_be_ended(self, tmp_path: Path, store: Store, target: Path) -> None:
        bringing, over = threading.Event(), threading.Event()

        def slowly(entries: Sequence[Entry], folder: Path) -> None:
            bringing.set()
            assert over.wait(20)
            store(entries, folder)

        def end() -> None:
            raise Cancelled("the server is ending")

        one, two = cache_at(tmp_path), cache_at(tmp_path)
        (tmp_path / "other").mkdir()
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(one.fill, request(entry("m/1/a")), target, slowly)
            try:
                assert bringing.wait(20)
                with pytest.raises(Cancelled):
                    two.fill(request(entry("m/1/a"), go_on=end), tmp_path / "other", store)
            finally:
                over.set()
            first.result()
        assert store.brought == ["m/1/a"]


SIZES = (0, 10, 30, 40, 60, 110)
LIMIT = 100


class Shared(RuleBasedStateMachine):
    """A cache with two servers, of which each may be killed, against a list of what should be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store()
        self.servers = [cache_at(self.folder, LIMIT) for _ in range(2)]
        self.held: list[tuple[int, int, list[str]]] = []
        self.order: list[int] = []
        """What is kept, least recently used first."""

    @rule(model=st.integers(0, len(SIZES) - 1), server=st.integers(0, 1))
    def load(self, model: int, server: int) -> None:
        target = self.folder / "target"
        target.mkdir(exist_ok=True)
        before = len(self.store.brought)
        keys = load(self.servers[server], self.store, target, entry(f"{model}", SIZES[model]))
        assert (len(self.store.brought) == before) == (model in self.order)
        if model in self.order:
            self.order.remove(model)
        elif not self.make_room(SIZES[model]):
            assert keys == []
            return
        self.order.append(model)
        self.held.append((server, model, keys))

    def make_room(self, size: int) -> bool:
        loaded = {model for _, model, _ in self.held}
        free = [model for model in self.order if model not in loaded]
        total = size + sum(SIZES[model] for model in self.order)
        going = []
        while total > LIMIT and free:
            going.append(free.pop(0))
            total -= SIZES[going[-1]]
        if total > LIMIT:
            return False
        self.order = [model for model in self.order if model not in going]
        return True

    @rule(data=st.data())
    def unload(self, data: st.DataObject) -> None:
        if not self.held:
            return
        server, model, keys = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        self.servers[server].release(keys)
        if (server, model) not in [one[:2] for one in self.held]:  # a use ends with the last load of this server
            self.order.remove(model)
            self.order.append(model)

    @rule(server=st.integers(0, 1))
    def restart(self, server: int) -> None:
        self.servers[server].close()
        self.held = [one for one in self.held if one[0] != server]
        self.servers[server] = cache_at(self.folder, LIMIT)

    @invariant()
    def what_is_kept_is_what_should_be(self) -> None:
        found = kept(self.folder)
        assert {int(path) for path in found} == set(self.order)
        assert sum(found.values()) <= LIMIT

    def teardown(self) -> None:
        for server in self.servers:
            server.close()
        shutil.rmtree(self.folder)


TestShared = Shared.TestCase
TestShared.settings = settings(max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck))
