"""Model repositories in Azure Blob Storage."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Iterable
from typing import ClassVar

from attrs import frozen

from moorage.errors import StorageError
from moorage.storage import UNREADABLE, Entry
from moorage.storage.credentials import stored
from moorage.storage.fsspec import FsspecStorage, Info, Place
from moorage_azure.credentials import Access, choose
from moorage_azure.faults import ARCHIVED, AzureFault, explain, transient
from moorage_azure.settings import from_environment, from_file
from moorage_azure.urls import SCHEMES, parse

logger = logging.getLogger(__name__)


@frozen
class _Reached:
    access: Access
    container: str
    place: Place


class AzureStorage(FsspecStorage):
    """Reads containers of blobs, in accounts with and without directories (Data Lake)."""

    schemes: ClassVar = SCHEMES
    mount_variable: ClassVar[str] = "TRITON_AZURE_MOUNT_DIRECTORY"
    fingerprint_fields: ClassVar = ("etag",)
    exact: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__()
        self._reached: dict[str, _Reached] = {}

    def connect(self, url: str) -> Place:
        address = parse(url)
        entry = stored("as", url, address.canonical)
        settings = from_environment(os.environ) if entry is None else from_file(entry)
        access = choose(address, settings)
        if access.kind == "anonymous" and not settings.auth_type:
            logger.info("model repository %s: no credentials are set, so it is read as anybody may read it", url)
        containers = importlib.import_module("moorage_azure.containers")
        container = containers.Container(access, address.container)
        place = Place(container, f"{address.container}/{address.prefix}".rstrip("/"), address.container)
        self._reached[url] = _Reached(access, address.container, place)
        return place

    def access(self, url: str) -> Access:
        """How a URL is reached that has been connected."""
        return self._reached[url].access

    def explain(self, error: Exception, url: str) -> str:
        reached = self._reached.get(url)
        return explain(error, reached.access, reached.container) if isinstance(error, AzureFault) and reached else ""

    def transient(self, error: Exception) -> bool:
        return transient(error)

    def outdated(self, error: Exception) -> bool:
        return isinstance(error, AzureFault) and error.status in (401, 403)

    def fingerprint(self, info: Info) -> str:
        return f"{UNREADABLE}{ARCHIVED}" if info["archived"] else super().fingerprint(info)

    def checksum(self, info: Info) -> str:
        return f"md5:{info['md5']}" if info["md5"] else ""

    def confirm(self, place: Place) -> None:
        """Raises StorageError for a root that is a blob. A container that does not exist has not been listed, but refused."""
        if place.root != place.container and place.filesystem.isfile(place.root):
            raise StorageError(f"'{place.root}' is a file: give the folder that holds the models' folders")

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        etag = entry.fingerprint.partition("-")[2]
        yield place.filesystem.cat_file(f"{place.root}/{entry.path}", start, end, etag)

    def close(self) -> None:
        for reached in self._reached.values():
            reached.place.filesystem.close()
