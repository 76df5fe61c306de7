"""Files come whole, or an error comes: with ranges that fail, end early, change, and never come."""

from __future__ import annotations

import hashlib
import random
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tenacity import wait_none

from moorage.errors import StorageError
from moorage.storage import Entry, unseen
from moorage.storage import transfer as room
from moorage.storage.transfer import ATTEMPTS, Incomplete, Source, Transfer, persistently, verify

CONTENT = random.Random(5).randbytes(1000)
ENTRY = Entry("m/1/file", len(CONTENT), "one")
LISTED = {ENTRY.path: ENTRY.fingerprint}

Fetch = Callable[[Entry, int, int], Iterable[bytes]]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PAUSES", wait_none())


def lost(error: Exception) -> bool:
    return isinstance(error, ConnectionError)


def source(fetch: Fetch, look: Callable[[], Mapping[str, str]] = lambda: LISTED, **more: object) -> Source:
    return Source(fetch, look, lost, **{"chunk": 300, "threads": 4, **more})  # type: ignore[arg-type]


def whole(entry: Entry, start: int, end: int) -> Iterable[bytes]:
    return [CONTENT[start:end]]


def bring(folder: Path, made: Source, *entries: Entry) -> bytes:
    Transfer(made, folder, unseen).bring(entries or (ENTRY,))
    return (folder / ENTRY.path).read_bytes()


class Failing:
    """Fails at the calls of these numbers, after some bytes have come."""

    def __init__(self, calls: Iterable[int], after: int = 0, error: Exception | None = None) -> None:
        self.calls, self.after, self.error = set(calls), after, error or ConnectionResetError("reset")
        self.number = 0
        self.lock = threading.Lock()

    def __call__(self, entry: Entry, start: int, end: int) -> Iterator[bytes]:
        with self.lock:
            self.number += 1
            fails = self.number in self.calls
        if not fails:
            yield CONTENT[start:end]
            return
        if self.after:
            yield CONTENT[start : min(start + self.after, end)]
        raise self.error


def test_ranges_come_together(tmp_path: Path) -> None:
    asked: list[tuple[int, int]] = []

    def fetch(entry: Entry, start: int, end: int) -> Iterable[bytes]:
        asked.append((start, end))
        return (CONTENT[at : min(at + 7, end)] for at in range(start, end, 7))

    assert bring(tmp_path, source(fetch)) == CONTENT
    assert sorted(asked) == [(0, 300), (300, 600), (600, 900), (900, 1000)]


def test_files_without_content_cost_nothing(tmp_path: Path) -> None:
    empty = ENTRY._replace(size=0, checksum=f"md5:{hashlib.md5(b'').hexdigest()}")
    assert bring(tmp_path, source(Failing([1])), empty) == b""


@pytest.mark.parametrize("after", [0, 1, 299])
def test_what_has_come_is_kept_and_the_rest_asked_for_again(tmp_path: Path, after: int) -> None:
    failing = Failing([1, 3], after)
    assert bring(tmp_path, source(failing, threads=1)) == CONTENT
    assert failing.number == 6


def test_progress_counts_each_byte_once(tmp_path: Path) -> None:
    told: list[int] = []
    Transfer(source(Failing([1, 2, 3], 50)), tmp_path, told.append).bring([ENTRY])
    assert sum(told) == len(CONTENT)


def test_many_failures_with_progress_in_between_are_no_end(tmp_path: Path) -> None:
    assert bring(tmp_path, source(Failing(range(1, 90), 10), threads=1)) == CONTENT


def test_failures_without_progress_are_the_end(tmp_path: Path) -> None:
    failing = Failing(range(1, 1000))
    with pytest.raises(ConnectionResetError):
        bring(tmp_path, source(failing, threads=1))
    assert failing.number == ATTEMPTS


def test_other_errors_are_not_tried_again(tmp_path: Path) -> None:
    failing = Failing(range(1, 1000), after=10, error=PermissionError("no"))
    with pytest.raises(PermissionError):
        bring(tmp_path, source(failing, threads=1))
    assert failing.number == 1


def test_answers_that_end_early_are_continued(tmp_path: Path) -> None:
    assert bring(tmp_path, source(lambda _, start, end: [CONTENT[start : min(start + 11, end)]])) == CONTENT


def test_answers_without_anything_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(Incomplete, match="none of 300 bytes of 'm/1/file' have arrived"):
        bring(tmp_path, source(lambda *_: [], threads=1))


def test_more_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="'m/1/file': the store has sent more than it was asked for"):
        bring(tmp_path, source(lambda *_: [CONTENT], threads=1))


def test_the_first_error_ends_the_others(tmp_path: Path) -> None:
    failed = threading.Event()
    calls: list[int] = []

    def fetch(entry: Entry, start: int, end: int) -> Iterator[bytes]:
        calls.append(start)
        if start == 0:
            failed.set()
            raise PermissionError("no")
        assert failed.wait(10)
        for at in range(start, end):
            yield CONTENT[at : at + 1]

    with pytest.raises(PermissionError):
        bring(tmp_path, source(fetch, chunk=10, threads=2))
    assert len(calls) < 50


def test_errors_name_their_file(tmp_path: Path) -> None:
    @contextmanager
    def explained(path: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise StorageError(f"{path}: {error}") from error

    with pytest.raises(StorageError, match="m/1/file: reset"):
        bring(tmp_path, source(Failing(range(1, 100)), explained=explained))


def test_no_more_are_under_way_than_there_are_threads(tmp_path: Path) -> None:
    guard, under_way, most = threading.Lock(), 0, 0
    full = threading.Barrier(4)

    def fetch(entry: Entry, start: int, end: int) -> Iterator[bytes]:
        nonlocal under_way, most
        with guard:
            under_way += 1
            most = max(most, under_way)
        if start < 400:
            full.wait(10)
        yield CONTENT[start:end]
        with guard:
            under_way -= 1

    assert bring(tmp_path, source(fetch, chunk=100)) == CONTENT
    assert most == 4


def test_a_file_that_changed_meanwhile_is_found_by_another_listing(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="'m/1/file' has changed while it was downloaded"):
        bring(tmp_path, source(whole, lambda: {ENTRY.path: "two"}))
    with pytest.raises(StorageError, match="'m/1/file' has changed"):
        bring(tmp_path, source(whole, dict))


def never() -> Mapping[str, str]:
    raise AssertionError("listed again")


def test_nothing_is_listed_again_where_sums_or_conditions_do(tmp_path: Path) -> None:
    sums = ENTRY._replace(checksum=f"md5:{hashlib.md5(CONTENT).hexdigest()}")
    assert bring(tmp_path, source(whole, never), sums) == CONTENT
    assert bring(tmp_path, source(whole, never, exact=True)) == CONTENT


def test_damage_is_found_by_sums(tmp_path: Path) -> None:
    other = ENTRY._replace(checksum=f"md5:{hashlib.md5(b'other').hexdigest()}")
    with pytest.raises(StorageError, match="its md5 sum differs"):
        bring(tmp_path, source(whole, never), other)
    with pytest.raises(StorageError, match="its md5 sum differs"):
        bring(tmp_path, source(whole, never, exact=True), other)


def test_sums_of_other_kinds_are_computed_as_told_and_unknown_ones_are_none(tmp_path: Path) -> None:
    class Adler:
        value = 1

        def update(self, content: bytes) -> None:
            self.value = zlib.adler32(content, self.value)

        def hexdigest(self) -> str:
            return f"{self.value:08x}"

    entry = ENTRY._replace(checksum=f"adler:{zlib.adler32(CONTENT):08x}")
    assert bring(tmp_path, source(whole, never, digests={"adler": Adler}), entry) == CONTENT
    assert bring(tmp_path, source(whole), entry) == CONTENT
    with pytest.raises(StorageError, match="changed"):
        bring(tmp_path, source(whole, dict), entry)


def test_a_file_of_another_size_is_told(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"123")
    with pytest.raises(StorageError, match="'m/1/file' has 3 bytes, not the 1000 that the store lists"):
        verify(ENTRY, file)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    sizes=st.lists(st.integers(0, 400), min_size=1, max_size=5),
    chunk=st.integers(1, 200),
    threads=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_whatever_comes_in_whatever_pieces_is_the_same_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], chunk: int, threads: int, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("target")
    contents = {f"m/{number}/file": random.Random(number).randbytes(size) for number, size in enumerate(sizes)}
    entries = [Entry(path, len(content), "x") for path, content in contents.items()]
    chance = random.Random(seed)

    def fetch(entry: Entry, start: int, end: int) -> Iterator[bytes]:
        stop = chance.randrange(start, end) if chance.random() < 0.3 else end
        while start < stop:
            size = chance.randrange(1, 50)
            yield contents[entry.path][start : min(start + size, stop)]
            start += size
        if stop < end and chance.random() < 0.5:
            raise ConnectionResetError

    try:
        Transfer(source(fetch, exact=True, chunk=chunk, threads=threads), folder, unseen).bring(entries)
    except (ConnectionResetError, Incomplete):
        return  # unlucky five times in a row
    assert {path: (folder / path).read_bytes() for path in contents} == contents


def test_calls_are_repeated_while_their_errors_are_transient() -> None:
    calls = Failing([1, 2])
    assert persistently(lambda: b"".join(calls(ENTRY, 0, 5)), lost) == CONTENT[:5]
    with pytest.raises(PermissionError):
        persistently(lambda: [*Failing([1], error=PermissionError())(ENTRY, 0, 5)], lost)
    ends = Failing(range(1, 100))
    with pytest.raises(ConnectionResetError):
        persistently(lambda: [*ends(ENTRY, 0, 5)], lost)
    assert ends.number == ATTEMPTS
