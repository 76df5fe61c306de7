"""A store of a test's own, as object stores are: it knows no folders, counts what is asked of it, is slow and fails as told."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import ClassVar

from moorage.errors import MoorageError, StorageError, described
from moorage.hookspecs import hookimpl
from moorage.storage import Entry, Progress, Storage, unseen
from moorage.storage.transfer import Source, Transfer
from moorage.testing.repository import RepositoryBuilder

Meddle = Callable[[str, str], None]
"""Called before each request with its kind ("list", "read", "get") and path: may wait, or raise what is to go wrong."""


Spoil = Callable[[str, bytes], bytes]
"""Given a path and its content, says what comes of it."""


def keep_out(kind: str, path: str) -> None:
    """Requests as they are."""


def keep(_: str, content: bytes) -> bytes:
    """Contents as they are."""
    return content


class RemoteStore:
    """Serves the files below a folder under `url`. `plugin` brings its storage to a server; `repository` puts models into it.

        store = RemoteStore(tmp_path / "remote")
        store.repository.python("echo", SOURCE)
        monkeypatch.setattr(wiring, "BUILT_IN", (*wiring.BUILT_IN, ("remote store", store.plugin)))
        with Server(model_repository=store.url) as server: ...
        assert store.counts["get"] == 1

    `counts` are the requests that it has answered: "list" for each `page` of a listing, "read", and "get" for each range of a
    download of at most `chunk` bytes. With a `journal`, each is also a line of that file, "kind path", for tests of several
    processes. The fingerprint of a file follows from its content. Without `sums`, nothing is said of the content but that.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scheme: str = "fake",
        journal: Path | None = None,
        page: int = 1000,
        chunk: int = 1 << 20,
        sums: bool = True,
        mount_variable: str = "",
    ) -> None:
        self.repository = RepositoryBuilder(folder)
        self.folder = folder
        self.url = f"{scheme}://bucket"
        self.page = page
        self.chunk = chunk
        self.sums = sums
        self.counts: Counter[str] = Counter()
        self.closed = 0
        """How many servers have ended."""
        self.meddle: Meddle = keep_out
        self.spoil: Spoil = keep
        self._journal = journal
        self._guard = Lock()
        variable = mount_variable

        class Bound(RemoteStorage):
            schemes: ClassVar[Sequence[str]] = (scheme,)
            mount_variable: ClassVar[str] = variable
            store: ClassVar[RemoteStore] = self

        self.storage: type[Storage] = Bound
        self.plugin = _Plugin(Bound)

    def put(self, path: str, content: bytes | str) -> None:
        """Put an object at a path, or replace the one that is there: whole at once, as object stores do."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix="put-") as aside:
            whole = Path(aside) / file.name
            whole.write_bytes(content.encode() if isinstance(content, str) else content)
            whole.replace(file)

    def requested(self, kind: str, path: str, count: int = 1) -> None:
        """A request comes in."""
        self.meddle(kind, path)
        with self._guard:
            self.counts[kind] += count
            if self._journal is not None:
                with self._journal.open("a", encoding="utf-8") as journal:
                    journal.write(f"{kind} {path}\n")


class RemoteStorage(Storage):
    """The storage of a `RemoteStore`."""

    schemes: ClassVar[Sequence[str]] = ()
    store: ClassVar[RemoteStore]

    def list(self, url: str) -> tuple[Entry, ...]:
        with _translated(url):
            root = self._root(url)
            files = sorted(path for path in root.rglob("*") if path.is_file())
            self.store.requested("list", url, max(1, -(-len(files) // self.store.page)))
            return tuple(self._entry(root, file) for file in files)

    def read(self, url: str, path: str) -> bytes:
        with _translated(url):
            self.store.requested("read", path)
            return self.store.spoil(path, (self._root(url) / path).read_bytes())

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        root = self._root(url)

        def fetch(entry: Entry, start: int, end: int) -> Iterator[bytes]:
            self.store.requested("get", entry.path)
            yield self.store.spoil(entry.path, (root / entry.path).read_bytes())[start:end]

        def look() -> dict[str, str]:
            return {entry.path: entry.fingerprint for entry in self.list(url)}

        with _translated(url):
            explained = partial(_translated, url)
            source = Source(fetch, look, transient=_never, chunk=self.store.chunk, explained=explained)
            Transfer(source, target, progress).bring(entries)

    def close(self) -> None:
        self.store.closed += 1

    def _root(self, url: str) -> Path:
        root = self.store.folder / url.removeprefix(self.store.url).strip("/")
        if not root.is_dir():
            raise StorageError(f"model repository {url} does not exist")
        return root

    def _entry(self, root: Path, file: Path) -> Entry:
        content = file.read_bytes()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        checksum = f"md5:{digest}" if self.store.sums else ""
        return Entry(file.relative_to(root).as_posix(), len(content), f"etag-{digest}", checksum=checksum)


class _Plugin:
    """What a server loads."""

    def __init__(self, storage: type[Storage]) -> None:
        self._storage = storage

    @hookimpl
    def storage_schemes(self) -> Iterable[type[Storage]]:
        return (self._storage,)


def _never(_: Exception) -> bool:
    return False


@contextmanager
def _translated(url: str, path: str = "") -> Iterator[None]:
    try:
        yield
    except MoorageError:
        raise
    except Exception as error:
        where = f"model repository {url}" + (f", file {path}" if path else "")
        raise StorageError(f"{where}: {described(error)}") from error
