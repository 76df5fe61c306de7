"""The suite for storages, on what the core brings itself: local folders, memory, archives, web servers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from unittest.mock import patch

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from moorage._storage import LocalStorage
from moorage._storage.schemes import ArchiveStorage, GenericStorage
from moorage._storage.schemes.web import WebStorage
from moorage.storage import Storage
from moorage.testing import StorageTests


class TestLocalStorage(StorageTests):
    storage = LocalStorage

    def place(self, folder: Path) -> str:
        return str(folder)

    def write(self, url: str, path: str, content: bytes) -> None:
        put(Path(url), path, content)

    def remove(self, url: str, path: str) -> None:
        (Path(url) / path).unlink()

    def missing(self) -> str:
        return "/no/such/folder"


class MemoryStorage(GenericStorage):
    schemes = ("memory",)


class TestMemoryStorage(StorageTests):
    storage = MemoryStorage

    @pytest.fixture(autouse=True)
    def memory(self) -> Iterator[None]:
        yield
        MemoryFileSystem.store.clear()
        MemoryFileSystem.pseudo_dirs[:] = [""]

    def place(self, folder: Path) -> str:
        MemoryFileSystem().makedirs(f"/{folder.name}")
        return f"memory://{folder.name}"

    def write(self, url: str, path: str, content: bytes) -> None:
        MemoryFileSystem().pipe_file(f"{url}/{path}", content)

    def remove(self, url: str, path: str) -> None:
        MemoryFileSystem().rm_file(f"{url}/{path}")

    def missing(self) -> str:
        return "memory://nowhere"

    def unreachable(self, url: str) -> AbstractContextManager[object]:
        return patch.multiple(MemoryFileSystem, find=broken, _open=broken, cat_file=broken)


def broken(*_: object, **__: object) -> None:
    raise OSError(5, "memory is gone")


class TestArchiveStorage(StorageTests):
    storage = ArchiveStorage

    def make(self) -> Storage:
        return ArchiveStorage(lambda _: LocalStorage())

    def place(self, folder: Path) -> str:
        pack(folder)
        return f"zip://::{folder}.zip"

    def write(self, url: str, path: str, content: bytes) -> None:
        folder = unpacked(url)
        put(folder, path, content)
        pack(folder)

    def remove(self, url: str, path: str) -> None:
        folder = unpacked(url)
        (folder / path).unlink()
        pack(folder)

    def below(self, url: str, folder: str) -> str:
        return url.replace("://", f"://{folder}")

    def missing(self) -> str:
        return "zip://::/no/such/archive.zip"

    def unreachable(self, url: str) -> AbstractContextManager[object]:
        return patch.object(Path, "open", broken)


def unpacked(url: str) -> Path:
    return Path(url.partition("::")[2].removesuffix(".zip"))


def pack(folder: Path) -> None:
    """Put what is in a folder into the archive beside it, in one step."""
    archive = folder.with_suffix(".part")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in folder.rglob("*"):
            packed.write(file, file.relative_to(folder))
    archive.replace(folder.with_suffix(".zip"))


class TestWebStorage(StorageTests):
    storage = WebStorage

    @pytest.fixture(autouse=True)
    def server(self, tmp_path: Path) -> Iterator[None]:
        self.root = tmp_path
        with serving(tmp_path) as server:
            self.address = f"http://127.0.0.1:{server.server_port}"
            yield

    def place(self, folder: Path) -> str:
        return f"{self.address}/{folder.name}"

    def write(self, url: str, path: str, content: bytes) -> None:
        put(self.folder(url), path, content)

    def remove(self, url: str, path: str) -> None:
        (self.folder(url) / path).unlink()

    def missing(self) -> str:
        return f"{self.address}/nowhere"

    def unreachable(self, url: str) -> AbstractContextManager[object]:
        return patch.object(Handler, "translate_path", lambda *_: "/no/such/file")

    def folder(self, url: str) -> Path:
        return self.root / url.removeprefix(self.address + "/")


class Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None: ...


class serving(ThreadingHTTPServer):
    """A web server of a folder, which knows no ranges."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
        self.thread = Thread(target=partial(self.serve_forever, 0.01))

    def __enter__(self) -> serving:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.thread.join()
        self.server_close()


_times = count(1_000_000_000)


def put(folder: Path, path: str, content: bytes) -> None:
    """Write a file in one step. Its time is another second each time, for that is all that web servers tell."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name("part")
    part.write_bytes(content)
    os.utime(part, (time := next(_times), time))
    part.replace(file)
