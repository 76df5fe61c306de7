"""From a store to files: several ranges at once, in bounded memory, tried again, and checked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event
from typing import IO, Final, NamedTuple, Protocol, TypeVar

from attrs import frozen
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from moorage.errors import StorageError
from moorage.storage.base import Entry, Progress

T = TypeVar("T")

CHUNK: Final = 4 << 20
"""Bytes of one request, unless a store says otherwise; with THREADS it bounds the memory of a download."""
THREADS: Final = 16
ATTEMPTS: Final = 5
PAUSES: Final = wait_exponential(multiplier=0.1, max=5) + wait_random(0, 0.1)
"""Seconds between them."""


class Incomplete(ConnectionError):
    """Less has arrived than was asked for."""


class Digest(Protocol):
    """A check sum in the making, as those of `hashlib`."""

    def update(self, content: bytes, /) -> object: ...

    def hexdigest(self) -> str: ...


Digests = Mapping[str, Callable[[], Digest]]
"""What makes the check sums of each kind ("md5", "crc32c")."""

DIGESTS: Final[Digests] = {"md5": lambda: hashlib.md5(usedforsecurity=False)}
"""Those of every store."""


@frozen(eq=False)
class Source:
    """Where files come from. Called on several threads at once."""

    fetch: Callable[[Entry, int, int], Iterable[bytes]]
    """The bytes of a file from a first to before a last, in pieces that are written as they come."""
    look: Callable[[], Mapping[str, str]]
    """Lists the store again: path to fingerprint."""
    transient: Callable[[Exception], bool]
    digests: Digests = DIGESTS
    exact: bool = False
    """`fetch` raises unless the content is the one that was listed, so that nothing has to be listed again."""
    chunk: int = CHUNK
    """Bytes of one `fetch`."""
    explained: Callable[[str], AbstractContextManager[object]] = nullcontext
    """Translates what `fetch` raises for the file of a path, once it has been tried enough."""
    threads: int = THREADS
    """How many calls of `fetch` may run at once."""


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
        wait=PAUSES,
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
        self._all(self._fetch, list(_parts(entries, self.source.chunk)))
        self.check(entries)

    def check(self, entries: Sequence[Entry]) -> None:
        """Raises StorageError unless the files that have been brought are those that were listed."""
        self._all(self._verify, entries)
        if not self.source.exact:
            self._look_again([entry for entry in entries if kind(entry) not in self.source.digests])

    def _all(self, work: Callable[[T, Event], None], things: Sequence[T]) -> None:
        """Run `work` for each, several at once; the first error ends the others and is raised."""
        stop = Event()

        def run(one: T) -> None:
            try:
                work(one, stop)
            except BaseException:
                stop.set()  # here, for this thread takes the next thing at once
                raise

        with ThreadPoolExecutor(self.source.threads, thread_name_prefix="moorage-download") as threads:
            futures = [threads.submit(run, one) for one in things]
            done, waiting = wait(futures, return_when=FIRST_EXCEPTION)
            stop.set()
            for future in waiting:
                future.cancel()
        for future in done:
            future.result()

    def _fetch(self, part: _Part, stop: Event) -> None:
        with self.source.explained(part.entry.path), (self.target / part.entry.path).open("r+b") as file:
            file.seek(part.start)
            while part.start < part.end and not stop.is_set():
                arrived = persistently(partial(self._some, part, file, stop), self.source.transient)
                part = part._replace(start=part.start + arrived)

    def _some(self, part: _Part, file: IO[bytes], stop: Event) -> int:
        """Write what comes of a part, up to an error that is transient; the number of bytes. Raises if nothing has come."""
        arrived = 0
        try:
            for piece in self.source.fetch(part.entry, part.start, part.end):
                arrived += len(piece)
                if part.start + arrived > part.end:
                    raise StorageError(f"'{part.entry.path}': the store has sent more than it was asked for")
                file.write(piece)
                self.progress(len(piece))
                if stop.is_set():
                    break
        except Exception as error:
            if not arrived or not (isinstance(error, Incomplete) or self.source.transient(error)):
                raise
        if not arrived:
            raise Incomplete(f"none of {part.end - part.start} bytes of '{part.entry.path}' have arrived")
        return arrived

    def _verify(self, entry: Entry, stop: Event) -> None:
        if not stop.is_set():
            verify(entry, self.target / entry.path, self.source.digests)

    def _look_again(self, entries: Sequence[Entry]) -> None:
        """Where the store has no sums: what has been read is what was listed if nothing has changed since."""
        now = self.source.look() if entries else {}
        changed = next((entry.path for entry in entries if now.get(entry.path) != entry.fingerprint), None)
        if changed is not None:
            raise StorageError(f"'{changed}' has changed while it was downloaded; the load can be tried again")


def verify(entry: Entry, file: Path, digests: Digests = DIGESTS) -> None:
    """Raises StorageError unless the file has the size of the entry, and its check sum if that is of a kind in `digests`."""
    size = file.stat().st_size
    if size != entry.size:
        raise StorageError(f"'{entry.path}' has {size} bytes, not the {entry.size} that the store lists")
    made = digests.get(kind(entry))
    if made is None:
        return
    if _sum(file, made()) != entry.checksum.partition(":")[2]:
        raise StorageError(
            f"'{entry.path}' is not what was listed: its {kind(entry)} sum differs, so it has changed or arrived damaged; "
            "the load can be tried again"
        )


def kind(entry: Entry) -> str:
    """Of what kind the check sum of an entry is; empty if it has none."""
    return entry.checksum.partition(":")[0]


def _sum(file: Path, digest: Digest) -> str:
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _parts(entries: Sequence[Entry], chunk: int) -> Iterator[_Part]:
    for entry in entries:
        for start in range(0, entry.size, chunk):
            yield _Part(entry, start, min(start + chunk, entry.size))
