"""The storage of the scheme "s3"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from moorage.storage import Entry, Progress, unseen
from moorage.storage.fsspec import FsspecStorage, Place
from moorage_s3.settings import Settings
from moorage_s3.urls import parse


class S3Storage(FsspecStorage):
    """Repositories in S3 and in stores that speak its language.

    A poll costs one request for a thousand objects, a download one for each part; nothing else is asked. What is read must
    have the ETag that was listed, so that no half-replaced model can come together. An ETag is an MD5 sum for some objects
    alone, and only reading them tells which: in the listing it is a fingerprint, not a check sum.
    """

    schemes: ClassVar[Sequence[str]] = ("s3",)
    mount_variable: ClassVar[str] = "TRITON_AWS_MOUNT_DIRECTORY"
    fingerprint_fields: ClassVar[Sequence[str]] = ("ETag",)
    chunk: ClassVar[int] = 16 << 20
    exact: ClassVar[bool] = True

    def connect(self, url: str) -> Place:
        from moorage_s3 import client  # noqa: PLC0415 (botocore takes long to import)
        from moorage_s3.objects import Objects  # noqa: PLC0415

        where, settings = parse(url), Settings.read()
        if not settings.tls_verify:
            client.trust_anything()
        return Place(Objects(client.connect(where, settings), where.bucket), where.prefix, where.bucket)

    def confirm(self, place: Place) -> None:
        """An empty answer has come from the bucket, so there is one."""

    def download(self, url: str, entries: Sequence[Entry], target: Path, progress: Progress = unseen) -> None:
        from moorage_s3.sums import check  # noqa: PLC0415

        super().download(url, entries, target, progress)
        place, wanted = self.place(url), Settings.read().check_md5
        if wanted or (wanted is None and not place.filesystem.secure):
            encrypted = [entry.path for entry in entries if self.name(place, entry.path) in place.filesystem.encrypted]
            check(entries, [_etag(entry) for entry in entries], target, encrypted)

    def pieces(self, place: Place, entry: Entry, start: int, end: int) -> Iterable[bytes]:
        found: Iterable[bytes] = place.filesystem.pieces(self.name(place, entry.path), _etag(entry), start, end)
        return found

    def explain(self, error: Exception, url: str) -> str:
        from moorage_s3.faults import explain  # noqa: PLC0415

        place = self._places.get(url)
        return explain(error, parse(url), region=place.filesystem.region if place else "")

    def outdated(self, error: Exception) -> bool:
        from moorage_s3.faults import outdated  # noqa: PLC0415

        return outdated(error)

    def close(self) -> None:
        with self._lock:
            places: Iterable[Any] = list(self._places.values())
            self._places.clear()
        for place in places:
            place.filesystem.close()


def _etag(entry: Entry) -> str:
    return entry.fingerprint.partition("-")[2]
