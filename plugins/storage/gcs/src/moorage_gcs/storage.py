"""Model repositories in Google Cloud Storage."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar

from moorage.errors import StorageError
from moorage.storage import UNREADABLE, Entry
from moorage.storage.fsspec import FsspecStorage, Info, Place
from moorage.storage.transfer import Digests
from moorage_gcs.urls import SCHEMES, parse


class Crc32c:
    """A CRC-32C in the making."""

    def __init__(self) -> None:
        import google_crc32c  # noqa: PLC0415 (not needed to list plugins)

        self._extend = google_crc32c.extend
        self._sum = 0

    def update(self, content: bytes, /) -> None:
        self._sum = self._extend(self._sum, content)

    def hexdigest(self) -> str:
        return f"{self._sum:08x}"


class GcsStorage(FsspecStorage):
    """`gs://bucket/folder`. A file's fingerprint is its generation, its check sum the CRC-32C that every object has.

    Content is asked for by generation, so that a file that is replaced during a download is noticed at once.
    """

    schemes: ClassVar[Sequence[str]] = SCHEMES
    mount_variable: ClassVar[str] = "TRITON_GCS_MOUNT_DIRECTORY"
    digests: ClassVar[Digests] = {"crc32c": Crc32c}
    exact: ClassVar[bool] = True

    def connect(self, url: str) -> Place:
        from moorage_gcs import client  # noqa: PLC0415 (loads gcsfs)

        address = parse(url)
        try:
            return Place(client.connect(f"gs://{address.root}"), address.root, address.bucket)
        except StorageError as error:
            raise StorageError(f"model repository {url}: {error}") from error.__cause__

    def found(self, place: Place) -> Mapping[str, Info]:
        found: Mapping[str, Info] = place.filesystem.find(f"{place.root}/", detail=True)  # not what only begins alike
        return found

    def confirm(self, place: Place) -> None:
        """A folder with nothing in it is empty, unless it is an object. (A bucket that is not there has failed before.)"""
        key = place.root.removeprefix(place.container).lstrip("/")
        with suppress(FileNotFoundError):
            if key and place.filesystem.call("GET", "b/{}/o/{}", place.container, key, json_out=True):
                raise StorageError(
                    f"model repository gs://{place.root} is a file: give the folder that holds the models' folders"
                )

    def fingerprint(self, info: Info) -> str:
        if info.get("contentEncoding") == "gzip":
            return f"{UNREADABLE}it is stored with Content-Encoding gzip; upload it without (gcloud: no -z, -Z or -J)"
        return str(info["generation"])

    def checksum(self, info: Info) -> str:
        try:
            return "crc32c:" + base64.b64decode(info["crc32c"], validate=True).hex()
        except (KeyError, binascii.Error):
            return ""

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        key = self.name(place, entry.path).removeprefix(f"{place.container}/")
        yield place.filesystem.part(place.container, key, entry.fingerprint, start, end)

    def explain(self, error: Exception, url: str) -> str:
        from moorage_gcs import faults  # noqa: PLC0415 (loads gcsfs)

        return faults.explain(error, parse(url))

    def transient(self, error: Exception) -> bool:
        from moorage_gcs import faults  # noqa: PLC0415 (loads gcsfs)

        return faults.transient(error)

    def outdated(self, error: Exception) -> bool:
        from moorage_gcs import faults  # noqa: PLC0415 (loads gcsfs)

        return faults.outdated(error)
