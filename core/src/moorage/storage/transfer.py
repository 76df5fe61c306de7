"""From a store to files: several ranges at once, in bounded memory, tried again, and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple, TypeVar

from attrs import frozen
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from moorage.errors import StorageError
from moorage.storage.base import Entry, Progress

T = TypeVar("T")

CHUNK: Final = 4 << 20
"""Bytes of one request; with THREADS it bounds the memory of a download."""
THREADS: Final = 16
ATTEMPTS: Final = 5


class Incomplete(ConnectionError):
    """Less has arrived than was asked for."""


@frozen(eq=False)
class Source:
    """Where files come from. Called on several threads at once."""

    fetch: Callable[[str, int, int], bytes]
    """The bytes of a file from a first to before a last."""
    look: Callable[[], Mapping[str, str]]
    """Lists the store again: path to fingerprint."""
    transient: Callable[[Exception], bool]


class _Part(NamedTuple):
    entry: Entry
    start: int
    end: int


def persistently(call: Callable[[], T], transient: Callable[[Exception], bool]) -> T:
    """The result of a call that is tried again, with growing pauses, as long as its errors are transient."""

    def again(error: BaseException) -> bool:
        return isinstance(error, Incomplete) or (isinstance(error, Exception) and transient(error))

    retrying = Retrying(
        retry=retry_if_exception(again),
        stop=stop_after_attempt(ATTEMPTS),
        wait=wait_exponential_jitter(initial=0.1, max=5, jitter=0.1),
        reraise=True,
    )
    return retrying(call)


@frozen(eq=False)
class Transfer:
    """Brings files into a folder. After an error the folder holds what is of no use."""

    source: Source
    target: Path
    progress: Progress

    def bring(self, entries: Sequence[Entry]) -> None:
        """Raises StorageError for a file that is not what was listed any more, and what the source raises."""
        for entry in entries:
            file = self.target / entry.path
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as made:
                made.truncate(entry.size)
        self._all(self._fetch, list(_parts(entries)))
        self._all(self._verify, [entry for entry in entries if entry.checksum])
        self._look_again([entry for entry in entries if not entry.checksum])

    def _all(self, work: Callable[[T, Event], None], things: Sequence[T]) -> None:
        """Run `work` for each, several at once; the first error ends the others and is raised."""
        stop = Event()
        with ThreadPoolExecutor(THREADS, thread_name_prefix="moorage-download") as threads:
            futures = [threads.submit(work, one, stop) for one in things]
            done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
            stop.set()
            for future in waiting:
                future.cancel()
        for future in done:
            future.result()

    def _fetch(self, part: _Part, stop: Event) -> None:
        if stop.is_set():
            return
        content = persistently(lambda: self._part(part), self.source.transient)
        with (self.target / part.entry.path).open("r+b") as file:
            file.seek(part.start)
            file.write(content)
        self.progress(len(content))

    def _part(self, part: _Part) -> bytes:
        content = self.source.fetch(part.entry.path, part.start, part.end)
        if len(content) != part.end - part.start:
            raise Incomplete(f"{part.entry.path}: {len(content)} of {part.end - part.start} bytes have arrived")
        return content

    def _verify(self, entry: Entry, stop: Event) -> None:
        if not stop.is_set():
            verify(entry, self.target / entry.path)

    def _look_again(self, entries: Sequence[Entry]) -> None:
        """Where the store has no sums: what has been read is what was listed if nothing has changed since."""
        now = self.source.look() if entries else {}
        changed = next((entry.path for entry in entries if now.get(entry.path) != entry.fingerprint), None)
        if changed is not None:
            raise StorageError(f"'{changed}' has changed while it was downloaded; the load can be tried again")


def verify(entry: Entry, file: Path) -> None:
    """Raises StorageError unless the file has the size and the check sum of the entry, if that has one."""
    size = file.stat().st_size
    if size != entry.size:
        raise StorageError(f"'{entry.path}' has {size} bytes, not the {entry.size} that the store lists")
    kind, _, expected = entry.checksum.partition(":")
    if kind == "md5" and _md5(file) != expected:
        raise StorageError(f"'{entry.path}' has arrived damaged: its MD5 sum is not the one that the store lists")


def _md5(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _parts(entries: Sequence[Entry]) -> Iterator[_Part]:
    for entry in entries:
        for start in range(0, entry.size, CHUNK):
            yield _Part(entry, start, min(start + CHUNK, entry.size))
