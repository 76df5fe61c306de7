"""The connection to Google Cloud Storage, over gcsfs. Imported when a store is connected."""

from __future__ import annotations

import os
from typing import Any, Final
from urllib.parse import quote

from aiohttp import ClientTimeout
from gcsfs.core import GCSFileSystem

from moorage_gcs.credentials import choose, emulator

PAYER: Final = "MOORAGE_GCS_USER_PROJECT"
TIMEOUT: Final = ClientTimeout(total=300, sock_connect=15, sock_read=60)
"""Seconds for one request, of 4 MiB at most."""

_once = getattr(GCSFileSystem._request, "__wrapped__", GCSFileSystem._request)


class Client(GCSFileSystem):  # type: ignore[misc]  # gcsfs has no types
    """The file system of gcsfs for plain buckets, without its own repetition of requests: that is the storage's, for all alike.

    (What `gcsfs.GCSFileSystem` is asks for the kind of each bucket over gRPC first, with long time limits.)
    """

    async def _request(self, method: str, path: str, *args: Any, **options: Any) -> Any:
        return await _once(self, method, path, *args, **options)

    def part(self, bucket: str, key: str, generation: str, start: int, end: int) -> bytes:
        """A range of the content that an object has in one generation. Raises FileNotFoundError if it has another by now."""
        name = quote(key, safe="")
        url = f"{self._location}/download/storage/v1/b/{bucket}/o/{name}?alt=media&generation={generation}"
        _, content = self.call("GET", url, headers={"Range": f"bytes={start}-{end - 1}"})
        return bytes(content)


def connect(url: str) -> Client:
    """A file system with the credentials for a URL. Asks nothing of the store. Raises StorageError."""
    payer = os.environ.get(PAYER, "")
    return Client(
        project=payer or os.environ.get("GOOGLE_CLOUD_PROJECT", ""),
        access="read_only",
        token=choose(url),
        requester_pays=payer or False,
        endpoint_url=emulator() or None,
        requests_timeout=TIMEOUT,
        session_kwargs={"trust_env": True},
        skip_instance_cache=True,
        use_listings_cache=False,
    )
