"""Repositories in archives: `zip://models::/srv/models.zip`, `tar://::s3://bucket/models.tar`."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, ClassVar
from weakref import finalize

from fsspec import filesystem

from moorage._storage.schemes.generic import GenericStorage
from moorage._storage.urls import Location, split
from moorage.errors import InvalidArgument
from moorage.storage import Entry, InPlaceStorage, Storage
from moorage.storage.fsspec import FsspecStorage, Place

Opener = Callable[[str], Storage]
"""The storage for a scheme. Raises NotFound."""


class ArchiveStorage(GenericStorage):
    """Reads a folder in an archive, which may lie in any other store. Each listing opens the archive anew."""

    schemes: ClassVar[Sequence[str]] = ("libarchive", "tar", "zip")

    def __init__(self, storage: Opener) -> None:
        super().__init__()
        self._storage = storage
        self._stores: dict[str, Storage] = {}

    def connect(self, url: str) -> Place:
        folder, archive = self._parts(url)
        file = self._open(archive)
        try:
            opened = filesystem(split(url).scheme, fo=file, skip_instance_cache=True)
        except BaseException:
            file.close()
            raise
        finalize(opened, file.close)
        return Place(opened, folder.strip("/"))

    def list(self, url: str) -> tuple[Entry, ...]:
        self.forget(url)
        return super().list(url)

    def confirm(self, place: Place) -> None:
        if place.root:
            place.filesystem.info(place.root)

    def explain(self, error: Exception, url: str) -> str:
        if isinstance(error, zipfile.BadZipFile | tarfile.TarError):
            return f"'{self._parts(url)[1].url}' is no archive of this kind, or is not there as a whole yet: {error}"
        archive = self._parts(url)[1]
        store = self._stores.get(archive.scheme)
        told = store.explain(error, archive.url) if isinstance(store, FsspecStorage) else ""
        return told or super().explain(error, url)

    def transient(self, error: Exception) -> bool:
        return any(store.transient(error) for store in self._stores.values() if isinstance(store, FsspecStorage))

    def close(self) -> None:
        for store in self._stores.values():
            store.close()

    def _open(self, archive: Location) -> Any:
        if archive.scheme not in self._stores:
            self._stores[archive.scheme] = self._storage(archive.scheme)
        store = self._stores[archive.scheme]
        if isinstance(store, InPlaceStorage):
            return store.local_path(archive.url).open("rb")
        if isinstance(store, FsspecStorage):
            place = store.place(archive.url)
            return place.filesystem.open(place.root, "rb")
        raise InvalidArgument(f"an archive cannot be read in a store of scheme '{archive.scheme}', only as a whole file")

    def _parts(self, url: str) -> tuple[str, Location]:
        """The folder in the archive, and where the archive is."""
        head, separator, archive = url.partition("::")
        scheme, _, folder = head.partition("://")
        if not separator or not archive:
            raise InvalidArgument(
                f"model repository '{url}' must say where the archive is: {scheme}://FOLDER::ARCHIVE, for instance "
                f"{scheme}://::{folder or '/srv/models.zip'} for all of it"
            )
        return folder, split(archive)
