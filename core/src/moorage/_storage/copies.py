"""Models of remote repositories on this machine: private copies of a version's files, which last as long as it is loaded."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
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
from moorage._storage.wanted import Wanted, check_paths, check_sizes
from moorage.errors import Cancelled, MoorageError, StorageError, described
from moorage.storage import Entry, InPlaceStorage, Storage
from moorage.storage.transfer import verify

log = get_logger("moorage.storage")

_FULL: Final = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_REMEMBERED: Final = 10_000
"""Small files whose content is kept in memory."""


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
        self._ended: Future[None] = Future()
        self._guard = threading.Lock()
        self._contents: dict[tuple[str, str], tuple[str, bytes]] = {}

    def obtain(self, wanted: Wanted) -> Copy:
        """Bring the files of a version. Blocks. Raises StorageError that names it, and leaves nothing behind then."""
        self._go_on()
        variable = wanted.storage.mount_variable
        scratch = self._mounts.get(variable, self.scratch)
        with _explained(wanted, scratch.parent, variable if variable in self._mounts else "TMPDIR"):
            check_paths(wanted)
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
        with self._guard:
            if not self._ended.done():
                self._ended.set_result(None)

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
            log.info("taken from the model cache", model=wanted.model, version=wanted.version, size=shown(wanted.size))
        return keys

    def _bring(self, wanted: Wanted, entries: Sequence[Entry], target: Path) -> None:
        """Download files to their paths below `target`. Whatever goes wrong is raised as a MoorageError."""
        source = f"{wanted.url}/{wanted.folder}"
        try:
            size = sum(entry.size for entry in entries)
            if size > shutil.disk_usage(target).free:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with self._reporter.download(wanted.model, wanted.version, source, size) as arrived:

                def told(count: int) -> None:
                    self._go_on()
                    arrived(count)

                self._aside(lambda: wanted.storage.download(wanted.url, entries, target, told))
            check_sizes(entries, target)
        except MoorageError:
            raise
        except Exception as error:
            storage = type(wanted.storage).__name__
            raise StorageError(f"model repository {wanted.url}: {storage} failed: {described(error)}") from error

    def _aside(self, work: Callable[[], None]) -> None:
        """Do it on a thread that is left to itself when the server ends: a store that is silent must not hold that up."""
        done: Future[None] = Future()

        def run() -> None:
            try:
                work()
            except BaseException as error:  # noqa: BLE001 (raised where it is waited for)
                done.set_exception(error)
            else:
                done.set_result(None)

        threading.Thread(target=run, name="moorage-download", daemon=True).start()
        wait((done, self._ended), return_when=FIRST_COMPLETED)
        if not done.done():
            self._go_on()
        done.result()

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
        if self._ended.done():
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
        told = str(error) if isinstance(error, MoorageError) else described(error)
        raise StorageError(f"{wanted.what} could not be downloaded to {place}: {told}") from error


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        error = error.__cause__
    return False
