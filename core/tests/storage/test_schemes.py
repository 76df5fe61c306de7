"""Schemes that no plugin claims: what is served through fsspec, what is said of the rest."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry, known_implementations

from moorage._plugins import Registry
from moorage._repository.repositories import Repositories
from moorage._repository.storages import open_storage
from moorage._storage import LocalStorage
from moorage._storage.schemes import GenericStorage
from moorage.errors import InvalidArgument, NotFound, StorageError
from moorage.storage import Entry
from moorage.storage.fsspec import Place

REGISTRY = Registry(storages={"file": LocalStorage})


@pytest.fixture
def memory() -> Iterator[MemoryFileSystem]:
    yield MemoryFileSystem()
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]


def refused(scheme: str, registry: Registry = REGISTRY) -> str:
    with pytest.raises(NotFound) as caught:
        open_storage(scheme, registry)
    return str(caught.value)


def test_what_nobody_knows_lists_what_there_is() -> None:
    told = refused("memry")
    assert "no storage scheme 'memry': installed are: file (did you mean 'memory'?)" in told
    assert "fsspec knows ftp, github, hf, http" in told
    assert "A plugin can add a scheme: see docs/how-to/write-a-storage.md" in told


def test_what_lacks_a_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"class": "no_such_package.AcmeFileSystem", "err": "Install acmefs to access Acme"}
    monkeypatch.setitem(known_implementations, "acme", entry)
    assert "fsspec can serve it once its package is installed (Install acmefs to access Acme)" in refused("acme")


@pytest.mark.parametrize("scheme, why", [("simplecache", "caches another store"), ("dir", "not a place for models")])
def test_what_is_no_place_for_models(scheme: str, why: str) -> None:
    assert why in refused(scheme)


@pytest.mark.parametrize("scheme, extra", [("gs", "gcs"), ("abfs", "azure")])
def test_plugins_of_ours_are_not_got_round(scheme: str, extra: str) -> None:
    told = refused(scheme)
    assert f'pip install "moorage[{extra}]"' in told
    assert "fsspec" not in told


def test_what_two_plugins_claim_is_neither() -> None:
    registry = Registry(refused={("storage", "memory"): "claimed by 'one' and 'two'"})
    assert "claimed by 'one' and 'two'" in refused("memory", registry)


def test_a_plugin_goes_before_fsspec() -> None:
    class Own(LocalStorage):
        schemes = ("memory",)

    assert type(open_storage("memory", Registry(storages={"memory": Own}))) is Own


def test_a_repository_in_memory(memory: MemoryFileSystem) -> None:
    memory.pipe_file("/models/m/1/model.bin", b"x")
    memory.pipe_file("/models-2/other/1/model.bin", b"x")
    snapshot = Repositories(["memory://models/"], REGISTRY).scan()
    assert [model.name for model in snapshot.models] == ["m"]


def test_the_root_of_a_store(memory: MemoryFileSystem) -> None:
    memory.pipe_file("/m/1/model.bin", b"x")
    storage = open_storage("memory", REGISTRY)
    (entry,) = storage.list("memory:///")
    assert entry.path == "m/1/model.bin"
    assert storage.read("memory:///", "m/1/model.bin") == b"x"


class Folders(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """A store that lists folder by folder: `tree` maps folders to the infos in them, or to what is raised."""

    protocol = "folders"
    tree: ClassVar[dict[str, Any]] = {}
    infos: ClassVar[dict[str, Any]] = {}
    busy = threading.Lock()

    @classmethod
    @contextmanager
    def used(cls) -> Iterator[None]:
        assert cls.busy.acquire(blocking=False), "used on two threads at once"
        time.sleep(0.0005)  # so that another thread would be seen
        yield
        cls.busy.release()

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        with self.used():
            found = self.tree[path]
        if isinstance(found, Exception):
            raise found
        return found

    def open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        with self.used():
            return Opened(b"content" * 1000)

    def info(self, path: str, **kwargs: Any) -> Any:
        if path not in self.infos:
            raise FileNotFoundError(path)
        return {"name": path, **self.infos[path]}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        with self.used():
            return b"content"


class Opened(io.BytesIO):
    """A file that asks the store for whatever is done with it."""

    def seek(self, offset: int, whence: int = 0) -> int:
        with Folders.used():
            return super().seek(offset, whence)

    def read(self, size: int | None = -1) -> bytes:
        with Folders.used():
            return super().read(size)

    def close(self) -> None:
        if not self.closed:
            with Folders.used():
                super().close()


def folder(name: str) -> dict[str, Any]:
    return {"name": name, "type": "directory", "size": 0}


def file(name: str, size: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "file", "size": size, **more}


@pytest.fixture
def folders(monkeypatch: pytest.MonkeyPatch) -> type[Folders]:
    monkeypatch.setattr(Folders, "tree", {})
    monkeypatch.setattr(Folders, "infos", {})
    monkeypatch.setitem(_registry, "folders", Folders)
    return Folders


def test_a_folder_that_fails_is_not_empty(folders: type[Folders]) -> None:
    folders.tree = {"r": [folder("r/a"), file("r/x")], "r/a": [folder("r/a/b")], "r/a/b": OSError(5, "the line is dead")}
    with pytest.raises(StorageError, match="the line is dead"):
        GenericStorage().list("folders://r")
    folders.tree["r/a/b"] = [file("r/a/b/y")]
    assert {entry.path for entry in GenericStorage().list("folders://r")} == {"x", "a/b/y"}


def test_each_listing_asks_the_store(folders: type[Folders], monkeypatch: pytest.MonkeyPatch) -> None:
    forgotten: list[str | None] = []

    def invalidate_cache(_: Folders, path: str | None = None) -> None:
        forgotten.append(path)

    monkeypatch.setattr(folders, "invalidate_cache", invalidate_cache)
    folders.tree = {"r": [file("r/x")]}
    storage = GenericStorage()
    for _ in range(3):
        storage.list("folders://r")
    assert forgotten == [None] * 3


def test_links_are_followed(folders: type[Folders]) -> None:
    folders.tree = {
        "r": [{"name": f"r/{name}", "type": "link", "size": 9} for name in ("f", "d", "gone")],
        "r/d": [file("r/d/y")],
    }
    folders.infos = {"r/f": {"type": "file", "size": 5}, "r/d": {"type": "directory", "size": 0}}
    assert {(entry.path, entry.size) for entry in GenericStorage().list("folders://r")} == {("f", 5), ("d/y", 1)}


def test_links_that_lead_back_end(folders: type[Folders], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "ls", lambda _, path, detail=True: [folder(f"{path}/again")])
    with pytest.raises(StorageError, match="nested more than 64 deep"):
        GenericStorage().list("folders://r")


def test_sizes_that_the_listing_leaves_out_are_asked_for(folders: type[Folders]) -> None:
    folders.tree = {"r": [file("r/x", None, mtime=1)]}
    folders.infos = {"r/x": {"type": "file", "size": 7, "mtime": 1}}
    assert GenericStorage().list("folders://r") == (Entry("x", 7, "7-1"),)


def test_stores_that_tell_only_sizes_are_mentioned_once(folders: type[Folders], caplog: pytest.LogCaptureFixture) -> None:
    folders.tree = {"r": [file("r/x")], "dated": [file("dated/x", mtime=1)]}
    storage = GenericStorage()
    for url in ("folders://r", "folders://r", "folders://dated"):
        storage.list(url)
    assert caplog.text.count("a change that keeps them goes unnoticed") == 1


def test_one_thread_at_a_time(folders: type[Folders], tmp_path: Path) -> None:
    folders.tree = {"r": [file(f"r/{number}", 7000, mtime=1) for number in range(10)]}
    storage = GenericStorage()

    def work(number: int) -> None:
        target = tmp_path / str(number)
        target.mkdir()
        storage.download("folders://r", storage.list("folders://r"), target)
        assert storage.read("folders://r", "0") == b"content"

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert len(list(tmp_path.rglob("*"))) == 44


@pytest.mark.parametrize("url", ["sftp://me:hush@host/models", "ftp://me:hush@host/models", "https://me:hush@host/models"])
def test_passwords_in_urls_are_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        GenericStorage().list(url)
    scheme = url.partition(":")[0]
    assert f"{scheme}://me@host/models holds a password" in str(caught.value)
    assert f"FSSPEC_{scheme.upper()}_PASSWORD" in str(caught.value)
    assert "hush" not in str(caught.value)


def archive(tmp_path: Path, kind: str) -> Path:
    packed = tmp_path / f"models.{kind}"
    source = tmp_path / "model.bin"
    source.write_bytes(b"content")
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as made:
            made.write(source, "inner/m/1/model.bin")
    else:
        with tarfile.open(packed, "w:gz" if kind == "tar.gz" else "w") as made:
            made.add(source, "inner/m/1/model.bin")
    return packed


@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz"])
def test_archives(kind: str, tmp_path: Path) -> None:
    url = f"{kind.partition('.')[0]}://inner::{archive(tmp_path, kind)}"
    storage = open_storage(url.partition(":")[0], REGISTRY)
    (entry,) = storage.list(url)
    assert (entry.path, entry.size) == ("m/1/model.bin", 7)
    assert storage.read(url, entry.path) == b"content"
    (tmp_path / "out").mkdir()
    storage.download(url, [entry], tmp_path / "out")
    assert (tmp_path / "out" / entry.path).read_bytes() == b"content"
    with pytest.raises(StorageError, match="does not exist"):
        storage.list(url.replace("inner", "other"))


def test_archives_in_the_store_of_a_plugin(memory: MemoryFileSystem, tmp_path: Path) -> None:
    connected = []

    class Vault(GenericStorage):
        """A plugin, with credentials of its own."""

        schemes = ("vault",)

        def connect(self, url: str) -> Place:
            connected.append(url)
            return Place(memory, "/" + url.removeprefix("vault://"))

        def explain(self, error: Exception, url: str) -> str:
            return f"the vault has no {url}"

    memory.pipe_file("/safe/models.zip", archive(tmp_path, "zip").read_bytes())
    storage = open_storage("zip", Registry(storages={"vault": Vault}))
    assert [entry.path for entry in storage.list("zip://inner::vault://safe/models.zip")] == ["m/1/model.bin"]
    assert connected == ["vault://safe/models.zip"]
    with pytest.raises(StorageError, match="the vault has no vault://gone"):
        storage.list("zip://inner::vault://gone.zip")


def test_archives_in_archives(memory: MemoryFileSystem, tmp_path: Path) -> None:
    outer = tmp_path / "outer.zip"
    with zipfile.ZipFile(outer, "w") as made:
        made.write(archive(tmp_path, "tar"), "deep/models.tar")
    storage = open_storage("tar", REGISTRY)
    assert [entry.path for entry in storage.list(f"tar://inner::zip://deep/models.tar::{outer}")] == ["m/1/model.bin"]


@pytest.mark.parametrize("url", ["zip:///srv/models.zip", "zip://models.zip", "zip://models::"])
def test_archives_must_be_named(url: str) -> None:
    with pytest.raises(InvalidArgument, match="must say where the archive is: zip://FOLDER::ARCHIVE"):
        open_storage("zip", REGISTRY).list(url)


def test_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "half.zip").write_bytes(archive(tmp_path, "zip").read_bytes()[:50])
    with pytest.raises(StorageError, match=r"half\.zip' is no archive of this kind, or is not there as a whole yet"):
        open_storage("zip", REGISTRY).list(f"zip://::{tmp_path}/half.zip")
    (tmp_path / "folder.zip").mkdir()
    with pytest.raises(StorageError, match=r"folder\.zip"):
        open_storage("zip", REGISTRY).list(f"zip://::{tmp_path}/folder.zip")


@pytest.mark.parametrize(
    "inner, said",
    [("gs://bkt/models.zip", "moorage[gcs]"), ("nope://x.zip", "scheme 'nope'"), ("simplecache::gs://x.zip", "leave it out")],
)
def test_stores_of_archives_must_be_there(inner: str, said: str) -> None:
    with pytest.raises(NotFound) as caught:
        open_storage("zip", REGISTRY).list(f"zip://::{inner}")
    assert said in str(caught.value)


def test_memory_needs_no_web_client() -> None:
    code = "\n".join(
        [
            "import sys",
            "sys.modules['aiohttp'] = None",
            "from moorage._plugins import Registry",
            "from moorage._repository.storages import open_storage",
            "assert 'fsspec' not in sys.modules",
            "open_storage('memory', Registry())",
            "try: open_storage('http', Registry())",
            "except Exception as error: print(error)",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'requires "requests" and "aiohttp" to be installed' in done.stdout
