"""A cache of files of remote repositories that outlives the server: what has not changed is not downloaded again.

    DIR/entries     the files, see `moorage._storage.shelf`
    DIR/servers     for each server a folder of its own: which files it needs, and what is not finished yet
    DIR/claims      locks of those who bring files
    DIR/lock        held by who makes room

A file is known by its URL, its size and the store's own fingerprint of its content, so that what is here is never out of date.
"""

from __future__ import annotations

import hashlib
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from attrs import frozen
from filelock import FileLock

from moorage._storage.claims import Claims
from moorage._storage.pins import Pins
from moorage._storage.room import victims
from moorage._storage.scratch import Scratch
from moorage._storage.shelf import Shelf, size_of
from moorage._storage.sizes import shown
from moorage.errors import InvalidArgument
from moorage.storage import Entry

logger = logging.getLogger(__name__)

_THREADS: Final = 8
FLAG: Final = "--model-cache-dir"
_TAG: Final = "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of moorage's; backups can leave it out.\n"

Bring = Callable[[Sequence[Entry], Path], None]
"""Downloads files to their paths below a folder."""


@frozen(eq=False)
class Request:
    """Files that are wanted from below one URL. `what` names them in the log; `go_on` raises what is to end a long wait.

    `part` names what a file belongs to: of servers that want files of the same part one brings them.
    """

    what: str
    url: str
    entries: Sequence[Entry]
    part: Callable[[Entry], str]
    go_on: Callable[[], None]


class Cache:
    """Files in a folder that several servers may share. At most `limit` bytes are kept, but all that servers have loaded is.

    Trouble with the cache itself fails nothing: the files are then brought past it.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        """Raises InvalidArgument if the folder cannot be made or written to."""
        self.folder = folder
        self.limit = limit
        self._scratch = Scratch(folder / "servers")
        self._shelf = Shelf(folder / "entries", self._scratch.folder)
        self._pins = Pins(self._scratch)
        self._claims = Claims(folder / "claims")
        self._guard = threading.Lock()
        _prepare(folder)
        self._scratch.sweep()

    def fill(self, request: Request, target: Path, bring: Bring) -> list[str]:
        """Put files to their paths below the folder `target`; what is not here is brought, and kept if there is room.

        The keys returned are pinned until they are given to `release`. Raises what `bring` raises, which is no OSError.
        """
        left = {_key(request.url, entry): entry for entry in request.entries}
        pinned: list[str] = []
        try:
            try:
                pinned = self._pinned(request.what, [key for key, entry in left.items() if _is_known(entry)], target)
                self._fill(request, left, pinned, target, bring)
            except OSError as error:
                logger.warning("%s: the model cache %s cannot be used: %s", request.what, self.folder, error)
            if left:
                bring(list(left.values()), target)
        except BaseException:
            self.release(pinned)
            raise
        return pinned

    def release(self, keys: Sequence[str]) -> None:
        """These are not needed any more. They stay as long as there is room."""
        for key in self._pins.drop(keys):
            self._shelf.touch(key)

    def close(self) -> None:
        """The server ends."""
        self._scratch.close()

    def _fill(self, request: Request, left: dict[str, Entry], pinned: Sequence[str], target: Path, bring: Bring) -> None:
        """Take what is here, and bring what has been given room. `left` loses what is done."""
        self._take(left, target)
        missing = [key for key in pinned if key in left]
        if not missing:
            return
        parts = {request.part(left[key]) for key in missing}
        with self._claims.hold(parts, request.what, request.go_on):
            self._take(left, target)  # what another has brought meanwhile
            missing = [key for key in missing if key in left]
            if missing:
                bring([left[key] for key in missing], target)
            for key in missing:
                entry = left.pop(key)
                self._shelf.put(key, target / entry.path, f"{request.url}/{entry.path}")

    def _take(self, left: dict[str, Entry], target: Path) -> None:
        files = {key: target / entry.path for key, entry in left.items()}
        for folder in {file.parent for file in files.values()}:
            folder.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="moorage-cache") as threads:
            for key, taken in zip(files, threads.map(self._shelf.take, files.keys(), files.values()), strict=True):
                if taken:
                    del left[key]

    def _pinned(self, what: str, keys: Sequence[str], target: Path) -> list[str]:
        """Pin these and make room for them; if there is none, pin those alone that are here."""
        with self._alone():
            self._scratch.sweep()
            kept, others = self._shelf.kept(), self._pins.all()
            limit = min(self.limit, sum(one.size for one in kept.values()) + _spare(self.folder, target, keys))
            going = victims(kept, {**others, **{key: size_of(key) for key in keys}}, limit)
            for key in going or ():
                self._shelf.remove(key)
            staying = list(keys) if going is not None else [key for key in keys if key in kept]
            self._pins.add(staying)
        if going is None:
            size, used = sum(map(size_of, keys)), sum(others.values())
            text = "%s: its %s are not kept in the model cache, which may hold %s, of which %s are in use"
            logger.warning(text, what, shown(size), shown(limit), shown(used))
        return staying

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other server, nor thread, makes room or pins meanwhile."""
        with self._guard, FileLock(self.folder / "lock", poll_interval=0.01, thread_local=False):
            yield


def _key(url: str, entry: Entry) -> str:
    name = "\0".join((url, entry.path, entry.fingerprint)).encode(errors="surrogateescape")
    return f"{hashlib.blake2b(name, digest_size=20).hexdigest()}-{entry.size}"


def _is_known(entry: Entry) -> bool:
    """Whether the store tells one content from another of the same size."""
    return entry.fingerprint not in ("", str(entry.size))


def _spare(folder: Path, target: Path, keys: Sequence[str]) -> int:
    """The bytes by which the cache may grow on its disk, on which the copies may be as well."""
    free = shutil.disk_usage(folder).free
    return free - sum(map(size_of, keys)) if folder.stat().st_dev == target.stat().st_dev else free


def _prepare(folder: Path) -> None:
    try:
        for part in ("servers", "entries", "claims"):
            (folder / part).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder / part):
                pass
        (folder / "CACHEDIR.TAG").write_text(_TAG, encoding="utf-8")
    except OSError as error:
        advice = "give a folder that this user may write to, or whose parent"
        raise InvalidArgument(f"{FLAG}={folder}: it cannot be used: {error.strerror} ({error.filename}); {advice}") from error
