"""Models of remote repositories on this machine: private copies of a version's files, which last as long as it is loaded."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from attrs import frozen

from moorage._logging import get_logger
from moorage._storage.cache import Cache, Request
from moorage._storage.progress import LogReporter, Reporter
from moorage._storage.scratch import Scratch
from moorage._storage.sizes import shown
from moorage.errors import Cancelled, MoorageError, StorageError, described
from moorage.storage import Entry, InPlaceStorage, Storage
from moorage.storage.transfer import verify

log = get_logger("moorage.storage")

_FULL: Final = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_REMEMBERED: Final = 10_000
"""Small files whose content is kept in memory."""


@frozen(eq=False)
class Wanted:
    """Files of one version of a model: the paths of `entries` are below the model's `folder`, which is below `url`."""

    model: str
    storage: Storage
    url: str
    folder: str
    version: int
    entries: Sequence[Entry]

    @property
    def what(self) -> str:
        """The version as messages name it."""
        return f"model '{self.model}' version {self.version}"

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


@frozen(eq=False)
class Copy:
    """Files of a model on this machine, nobody else's. `path` is the model's folder."""

    path: Path
    _remove: Callable[[], None]

    def close(self) -> None:
        """Remove the files. May be called again."""
        self._remove()


class Copies:
    """Makes copies below `scratch`, or below what `mounts` has for the storage's variable, through `cache` if there is one."""

    def __init__(
        self,
        scratch: Scratch | None = None,
        *,
        cache: Cache | None = None,
        mounts: Mapping[str, Scratch] | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.scratch = scratch if scratch is not None else Scratch()
        self._cache = cache
        self._mounts = mounts or {}
        self._reporter: Reporter = reporter if reporter is not None else LogReporter()
        self._stopped = threading.Event()
        self._guard = threading.Lock()
        self._contents: dict[tuple[str, str], tuple[str, bytes]] = {}

    def obtain(self, wanted: Wanted) -> Copy:
        """Bring the files of a version. Blocks. Raises StorageError that names it, and leaves nothing behind then."""
        self._go_on()
        variable = wanted.storage.mount_variable
        scratch = self._mounts.get(variable, self.scratch)
        with _explained(wanted, scratch.parent, variable if variable in self._mounts else "TMPDIR"):
            _check_paths(wanted)
            target = scratch.folder("copy")
            try:
                (target / wanted.folder / str(wanted.version)).mkdir(parents=True)
                keys = self._fill(wanted, target)
            except BaseException:
                shutil.rmtree(target, ignore_errors=True)
                raise
        return Copy(target / wanted.folder, partial(self._remove, target, keys))

    def read(self, storage: Storage, url: str, entry: Entry, fetch: Callable[[], bytes]) -> bytes:
        """The content of a small file, whose path is below `url`, as it was listed. `fetch` reads it if it is not here."""
        if isinstance(storage, InPlaceStorage):
            return fetch()
        known = self._contents.get((url, entry.path))
        if known is not None and known[0] == entry.fingerprint != "":
            return known[1]
        content = fetch() if self._cache is None else self._read(self._cache, url, entry, fetch)
        with self._guard:
            if len(content) == entry.size:
                self._contents[url, entry.path] = (entry.fingerprint, content)
            while len(self._contents) > _REMEMBERED:
                del self._contents[next(iter(self._contents))]
        return content

    def stop(self) -> None:
        """End the downloads that run; there will be none any more. May be called from any thread."""
        self._stopped.set()

    def close(self) -> None:
        """Remove all copies, and what else is below the scratch folder."""
        self.stop()
        for scratch in (self.scratch, *self._mounts.values()):
            scratch.close()
        if self._cache is not None:
            self._cache.close()

    def _fill(self, wanted: Wanted, target: Path) -> list[str]:
        """Bring all files below `target`; the keys of those that the cache has pinned."""
        entries = [entry._replace(path=f"{wanted.folder}/{entry.path}") for entry in wanted.entries]
        size = sum(entry.size for entry in entries)
        if size > shutil.disk_usage(target).free:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self._cache is None:
            self._bring(wanted, entries, target)
            return []
        brought: list[Entry] = []

        def bring(missing: Sequence[Entry], folder: Path) -> None:
            brought.extend(missing)
            self._bring(wanted, missing, folder)

        own, shared = f"{wanted.folder}/{wanted.version}", wanted.folder

        def part(entry: Entry) -> str:
            return f"{wanted.url}/{own if entry.path.startswith(f'{own}/') else shared}"

        keys = self._cache.fill(Request(wanted.what, wanted.url, entries, part, self._go_on), target, bring)
        if not brought:
            log.info("taken from the model cache", model=wanted.model, version=wanted.version, size=shown(size))
        return keys

    def _bring(self, wanted: Wanted, entries: Sequence[Entry], target: Path) -> None:
        """Download files to their paths below `target`. Whatever goes wrong is raised as a MoorageError."""
        source = f"{wanted.url}/{wanted.folder}"
        try:
            size = sum(entry.size for entry in entries)
            with self._reporter.download(wanted.model, wanted.version, source, size) as arrived:

                def told(count: int) -> None:
                    self._go_on()
                    arrived(count)

                wanted.storage.download(wanted.url, entries, target, told)
        except MoorageError:
            raise
        except Exception as error:
            storage = type(wanted.storage).__name__
            raise StorageError(f"model repository {wanted.url}: {storage} failed: {described(error)}") from error

    def _read(self, cache: Cache, url: str, entry: Entry, fetch: Callable[[], bytes]) -> bytes:
        """The content by way of the cache, which keeps it only if it is what was listed."""
        read: list[bytes] = []

        def bring(_: Sequence[Entry], folder: Path) -> None:
            read.append(fetch())
            file = folder / entry.path
            file.write_bytes(read[0])
            verify(entry, file)

        folder = self.scratch.folder("read")
        try:
            request = Request(f"file {entry.path}", url, [entry], lambda one: f"{url}/{one.path}", self._go_on)
            cache.release(cache.fill(request, folder, bring))
            return read[0] if read else (folder / entry.path).read_bytes()
        except StorageError:
            if read:  # it has changed since it was listed
                return read[0]
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _remove(self, target: Path, keys: list[str]) -> None:
        shutil.rmtree(target, ignore_errors=True)
        if self._cache is not None:
            self._cache.release(keys)
        keys.clear()

    def _go_on(self) -> None:
        if self._stopped.is_set():
            raise Cancelled("the server is ending")


@contextmanager
def _explained(wanted: Wanted, place: Path, variable: str) -> Iterator[None]:
    """Errors name the model and the store; a full disk says how much is needed, and what to do."""
    try:
        yield
    except Cancelled:
        raise
    except Exception as error:
        if _is_full(error):
            free = shown(shutil.disk_usage(place).free)
            need = f"{wanted.what} of {wanted.url} needs {shown(wanted.size)} in {place}, where {free} are free"
            raise StorageError(f"{need}: make room, or set {variable} to a folder on a larger disk") from error
        told = str(error) if isinstance(error, MoorageError) else f"model repository {wanted.url}: {described(error)}"
        raise StorageError(f"{wanted.what} could not be downloaded to {place}: {told}") from error


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False


def _check_paths(wanted: Wanted) -> None:
    """Raises StorageError for what no folder of this machine can hold at these paths."""
    paths = {f"{wanted.folder}/{entry.path}" for entry in wanted.entries}
    for path in sorted(paths):
        parts = path.split("/")
        foreign = os.sep != "/" and (os.sep in path or ":" in path)
        if foreign or "\0" in path or any(part in ("", ".", "..") for part in parts):
            raise StorageError(f"model repository {wanted.url}: no file of this machine can be called '{path}'; rename it")
        above = next((folder for depth in range(1, len(parts)) if (folder := "/".join(parts[:depth])) in paths), None)
        if above is not None:
            both = f"'{above}' is a file, and a folder, too, as there is '{path}'; rename one of them"
            raise StorageError(f"model repository {wanted.url}: {both}")
