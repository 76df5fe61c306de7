# ruff: noqa: S101 - a suite consists of assertions
"""The conformance suite for storages: subclass it in the plugin's tests."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from moorage.errors import MoorageError, StorageError
from moorage.storage import UNREADABLE, Entry, InPlaceStorage, Storage
from moorage.storage.fsspec import FsspecStorage

NAMES = (
    "model/config.pbtxt",
    "model/1/model.bin",
    "model/1/.hidden",
    "model/1/variables/deep/er/part-00000-of-00001",
    "model/labels.txt",
    "model-2/1/model.bin",
    "a model/1/a+b=c,d@e~(f)'.bin",
    "modèle/1/模型.bin",
    "beside.txt",
)
LARGE = (8 << 20) + 17
"""Bytes of a file that no storage should bring in one piece."""


class StorageTests(ABC):
    """Any storage must pass these. A subclass names its class and says how to change what it reads:

        class TestMyStorage(StorageTests):
            storage = MyStorage

            def place(self, folder: Path) -> str:
                return f"my://bucket/{folder.name}"

            def write(self, url: str, path: str, content: bytes) -> None: ...
            def remove(self, url: str, path: str) -> None: ...
            def missing(self) -> str:
                return "my://no-such-bucket/models"

    Changes go to the store by another way than the storage under test, as those of users do.
    """

    storage: ClassVar[type[Storage]]
    names: ClassVar[tuple[str, ...]] = NAMES
    """Paths of the files that are put into a place; leave out what the store cannot hold."""
    large: ClassVar[int] = LARGE

    @abstractmethod
    def place(self, folder: Path) -> str:
        """The URL of a place that is there and empty, another one for each `folder` (an empty folder of this test)."""

    @abstractmethod
    def write(self, url: str, path: str, content: bytes) -> None:
        """Put a file at `path` below `url`, or replace the one that is there."""

    @abstractmethod
    def remove(self, url: str, path: str) -> None:
        """Take away the file at `path` below `url`."""

    @abstractmethod
    def missing(self) -> str:
        """The URL of a place that is not there and must not be taken for empty, such as a bucket that does not exist."""

    def below(self, url: str, folder: str) -> str | None:
        """The URL of a folder in a place; None if folders have no URLs, which leaves out the tests that need them."""
        return f"{url}/{folder}"

    def _below(self, url: str, folder: str) -> str:
        below = self.below(url, folder)
        if below is None:
            pytest.skip("folders in it have no URLs")
        return below

    def unreachable(self, url: str) -> AbstractContextManager[object] | None:
        """While it is entered, the store fails or cannot be reached; None leaves out the test that needs it."""
        return None

    def make(self) -> Storage:
        """A storage to test."""
        return self.storage()

    @pytest.fixture
    def store(self) -> Iterator[Storage]:
        store = self.make()
        yield store
        store.close()

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        folder = tmp_path / "place"
        folder.mkdir()
        return self.place(folder)

    @pytest.fixture
    def target(self, tmp_path: Path) -> Path:
        folder = tmp_path / "target"
        folder.mkdir()
        return folder

    @pytest.fixture
    def contents(self, url: str) -> Mapping[str, bytes]:
        """The files that have been put below `url`."""
        random = Random(7)  # noqa: S311 - no secret
        contents = {name: random.randbytes(random.randrange(1, 5000)) for name in self.names}
        for path, content in contents.items():
            self.write(url, path, content)
        return contents

    def test_names_its_schemes(self) -> None:
        assert self.storage.schemes
        assert not isinstance(self.storage.schemes, str)
        assert all(scheme == scheme.lower() and "://" not in scheme for scheme in self.storage.schemes)

    def test_an_empty_place_is_listed_as_empty(self, store: Storage, url: str) -> None:
        assert files(store, url) == {}

    def test_lists_every_file_once_with_its_size(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        entries = [entry for entry in store.list(url) if not entry.is_dir]
        assert sorted(entry.path for entry in entries) == sorted(contents)
        assert {entry.path: entry.size for entry in entries} == {path: len(content) for path, content in contents.items()}
        assert not any(entry.fingerprint.startswith(UNREADABLE) for entry in entries)
        assert all(entry.fingerprint for entry in entries)

    def test_folders_have_no_fingerprint(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        folders = [entry for entry in store.list(url) if entry.is_dir]
        assert all(not entry.fingerprint and not entry.path.endswith("/") for entry in folders)

    def test_lists_below_a_folder_and_nothing_beside_it(self, store: Storage, url: str) -> None:
        for path in ("inner/model/1/x", "inner2/model/1/y", "inner-3/z", "inner.txt"):
            self.write(url, path, b"content")
        inner = self._below(url, "inner")
        assert set(files(store, inner)) == {"model/1/x"}
        assert store.read(inner, "model/1/x") == b"content"

    def test_a_file_is_no_repository(self, store: Storage, url: str) -> None:
        self.write(url, "model/1/x", b"content")
        with pytest.raises(MoorageError):
            store.list(self._below(url, "model/1/x"))

    def test_listings_of_the_same_are_the_same(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        first = set(store.list(url))
        assert all(set(store.list(url)) == first for _ in range(20))
        other = self.make()
        assert set(other.list(url)) == first
        other.close()

    @pytest.mark.parametrize("after", [b"two", b"longer", b""], ids=["same size", "longer", "empty"])
    def test_a_changed_file_has_another_fingerprint(self, after: bytes, store: Storage, url: str) -> None:
        self.write(url, "model/1/changed", b"one")
        self.write(url, "model/1/other", b"one")
        before = files(store, url)
        self.write(url, "model/1/changed", after)
        now = files(store, url)
        assert now["model/1/changed"].fingerprint != before["model/1/changed"].fingerprint
        assert now["model/1/changed"].size == len(after)
        assert now["model/1/other"] == before["model/1/other"]

    def test_what_comes_and_goes_shows_in_the_next_listing(self, store: Storage, url: str) -> None:
        self.write(url, "model/1/first", b"one")
        assert set(files(store, url)) == {"model/1/first"}
        self.write(url, "model/2/second", b"two")
        assert set(files(store, url)) == {"model/1/first", "model/2/second"}
        self.remove(url, "model/1/first")
        assert set(files(store, url)) == {"model/2/second"}

    def test_check_sums_are_those_of_the_content(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        for path, entry in files(store, url).items():
            if entry.checksum:
                kind, _, expected = entry.checksum.partition(":")
                digest = store.digests[kind]() if isinstance(store, FsspecStorage) else hashlib.new(kind)
                digest.update(contents[path])
                assert digest.hexdigest() == expected, path

    def test_reads_what_is_there_now(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        assert {path: store.read(url, path) for path in contents} == contents
        path = next(iter(contents))
        self.write(url, path, b"")
        store.list(url)
        assert store.read(url, path) == b""

    def test_reading_what_is_not_there_names_it(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        with pytest.raises(MoorageError, match="no-such-file"):
            store.read(url, "model/no-such-file")

    def test_downloads_the_tree(self, store: Storage, url: str, contents: Mapping[str, bytes], target: Path) -> None:
        self.write(url, "model/1/empty", b"")
        progress: list[int] = []
        entries = list(files(store, url).values())
        store.download(url, entries, target, progress.append)
        found = {str(file.relative_to(target)): file.read_bytes() for file in target.rglob("*") if file.is_file()}
        assert found == {**contents, "model/1/empty": b""}
        assert sum(progress) == sum(entry.size for entry in entries)

    def test_downloads_only_what_is_asked_for(self, store: Storage, url: str, target: Path) -> None:
        for path in ("model/1/wanted", "model/1/other", "model/2/wanted"):
            self.write(url, path, path.encode())
        store.download(url, [files(store, url)["model/1/wanted"]], target)
        assert [file.relative_to(target).as_posix() for file in target.rglob("*") if file.is_file()] == ["model/1/wanted"]

    def test_downloads_a_large_file(self, store: Storage, url: str, target: Path) -> None:
        content = Random(3).randbytes(self.large)  # noqa: S311 - no secret
        self.write(url, "model/1/large", content)
        progress: list[int] = []
        store.download(url, list(files(store, url).values()), target, progress.append)
        assert (target / "model/1/large").read_bytes() == content
        assert sum(progress) == len(content)

    @pytest.mark.parametrize("after", [b"two", b"longer", b"s", None], ids=["same size", "longer", "shorter", "gone"])
    def test_what_is_not_as_listed_is_not_downloaded(self, after: bytes | None, store: Storage, url: str, target: Path) -> None:
        self.write(url, "model/1/changed", b"one")
        entries = list(files(store, url).values())
        if after is None:
            self.remove(url, "model/1/changed")
        else:
            self.write(url, "model/1/changed", after)
        with pytest.raises(StorageError, match="changed"):
            store.download(url, entries, target)

    def test_a_missing_place_is_not_empty(self, store: Storage) -> None:
        url = self.missing()
        for _ in range(2):
            with pytest.raises(StorageError):
                store.list(url)
        with pytest.raises(StorageError):
            store.read(url, "model/config.pbtxt")

    def test_a_store_that_fails_is_not_empty(
        self, store: Storage, url: str, contents: Mapping[str, bytes], target: Path
    ) -> None:
        before = files(store, url)
        failing = self.unreachable(url)
        if failing is None:
            pytest.skip("this store cannot be made to fail")
        with failing:
            with pytest.raises(StorageError):
                store.list(url)
            with pytest.raises(StorageError):
                store.read(url, next(iter(contents)))
            with pytest.raises(StorageError):
                store.download(url, list(before.values()), target)
        assert files(store, url) == before

    def test_works_on_several_threads(self, store: Storage, url: str, contents: Mapping[str, bytes], tmp_path: Path) -> None:
        def work(number: int) -> bool:
            folder = tmp_path / f"copy-{number}"
            folder.mkdir()
            entries = files(store, url)
            store.download(url, list(entries.values()), folder)
            return all(store.read(url, path) == content == (folder / path).read_bytes() for path, content in contents.items())

        with ThreadPoolExecutor(8) as threads:
            assert all(threads.map(work, range(8)))

    def test_files_in_place_lie_where_they_are_said_to(self, store: Storage, url: str, contents: Mapping[str, bytes]) -> None:
        if not isinstance(store, InPlaceStorage):
            pytest.skip("its files have to be brought here")
        root = store.local_path(url)
        assert {path: (root / path).read_bytes() for path in contents} == contents


def files(store: Storage, url: str) -> dict[str, Entry]:
    """The files below a URL, by their paths."""
    return {entry.path: entry for entry in store.list(url) if not entry.is_dir}
