"""The suite for storages over SSH, where paramiko is installed: its server stands in for another machine."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec.config
import pytest

from moorage._storage.schemes import GenericStorage
from moorage.testing import StorageTests

paramiko: Any = pytest.importorskip("paramiko")
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning"), pytest.mark.heavy]


class Files(paramiko.SFTPServerInterface):  # type: ignore[misc]
    """The files of this machine, for reading."""

    def list_folder(self, path: str) -> Any:
        try:
            with os.scandir(path) as found:
                return [paramiko.SFTPAttributes.from_stat(one.stat(follow_symlinks=False), one.name) for one in found]
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    def stat(self, path: str) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat(Path(path).stat())
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)

    lstat = stat

    def open(self, path: str, flags: int, attr: object) -> Any:
        try:
            opened = paramiko.SFTPHandle(flags)
            opened.readfile = Path(path).open("rb")  # noqa: SIM115 - closed with the handle
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno)
        return opened


class Visitors(paramiko.ServerInterface):  # type: ignore[misc]
    """Lets in who knows the password."""

    def check_auth_password(self, username: str, password: str) -> int:
        known = (username, password) == ("models", "hush")
        return int(paramiko.AUTH_SUCCESSFUL if known else paramiko.AUTH_FAILED)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)


@pytest.fixture(scope="module")
def machine() -> Iterator[int]:
    """The port of a machine that can be reached by SSH."""
    key, transports = paramiko.RSAKey.generate(2048), []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                transport = paramiko.Transport(connection)
                transport.add_server_key(key)
                transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
                transport.start_server(server=Visitors())
                transports.append(transport)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()
    for transport in transports:
        transport.close()


class SftpStorage(GenericStorage):
    schemes = ("sftp",)


class TestSftpStorage(StorageTests):
    storage = SftpStorage
    large = (1 << 20) + 17

    @pytest.fixture(autouse=True)
    def _machine(self, machine: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.address = f"sftp://models@127.0.0.1:{machine}"
        options = {"password": "hush", "look_for_keys": False, "allow_agent": False}
        monkeypatch.setitem(fsspec.config.conf, "sftp", options)

    def place(self, folder: Path) -> str:
        self.seconds = 1_000_000_000
        return f"{self.address}{folder}"

    def write(self, url: str, path: str, content: bytes) -> None:
        file = self._file(url, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        self.seconds += 1
        os.utime(file, (self.seconds, self.seconds))

    def remove(self, url: str, path: str) -> None:
        self._file(url, path).unlink()

    def missing(self) -> str:
        return f"{self.address}/no/such/folder"

    def _file(self, url: str, path: str) -> Path:
        return Path(url.removeprefix(self.address)) / path
