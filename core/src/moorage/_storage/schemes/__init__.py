"""The URL schemes that no plugin claims: whatever fsspec knows, through one door. Imported when such a URL is used."""

from moorage._storage.schemes.archives import ArchiveStorage, Opener
from moorage._storage.schemes.generic import GenericStorage
from moorage._storage.schemes.known import OFTEN, NotInstalled, implementation
from moorage.storage import Storage

__all__ = ["OFTEN", "ArchiveStorage", "GenericStorage", "NotInstalled", "storage"]


def storage(scheme: str, others: Opener) -> Storage:
    """The storage for a scheme that fsspec knows; `others` opens the stores that archives lie in.

    Raises NotFound for one that is none, NotInstalled if it lacks a package.
    """
    implementation(scheme)
    if scheme in ArchiveStorage.schemes:
        return ArchiveStorage(others)
    if scheme in ("http", "https"):
        from moorage._storage.schemes.web import WebStorage  # noqa: PLC0415 (loads aiohttp, which need not be there)

        return WebStorage()
    return GenericStorage()
