"""Containers through Azure's library: the only module that imports it, and that knows its errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential, ManagedIdentityCredential
from azure.storage.blob import BlobProperties, ContainerClient
from requests.adapters import HTTPAdapter

from moorage.storage.transfer import THREADS
from moorage_azure.credentials import Access
from moorage_azure.faults import AzureFault

CONNECT_TIMEOUT: Final = 10
"""Seconds to reach the service."""
READ_TIMEOUT: Final = 30
"""Seconds between two pieces of an answer."""

_TARGET: Final = re.compile(r"with url: \S+ ?")
_SECRET: Final = re.compile(r"(?i)\b(sig|code|client_secret|assertion)=[^&\s'\"]+")
_CERTAIN: Final = re.compile(r"(?i)certificate|credential|identity|invalid")
"""Errors without an answer that would be the same at the next try."""


class Container:
    """A container of blobs, with as much of fsspec's interface as reading takes. Many threads may use it. Raises AzureFault.

    Names begin with the container's ("models/resnet/1/model.onnx"), as those of fsspec do. fsspec's own file system for Azure
    asks for more than the listing at each listing, takes a missing container for an empty one, lets a connection string in the
    environment outrank what it is given, and cannot read blobs with a '?' in their names.
    """

    def __init__(self, access: Access, name: str) -> None:
        self._name = name
        with translated():
            self._client = ContainerClient(
                access.endpoint,
                name,
                credential=credential(access),
                transport=_transport(),
                retry_total=0,  # trying again is the caller's
            )

    def find(self, root: str, *, detail: bool = True) -> dict[str, dict[str, Any]]:
        """The blobs below a folder by name, in one listing; folders that an account with directories lists are marked so."""
        prefix = root.removeprefix(self._name).strip("/")
        with translated():
            blobs = self._client.list_blobs(name_starts_with=f"{prefix}/" if prefix else None, include=["metadata"])
            return {f"{self._name}/{blob.name}": _info(blob) for blob in blobs}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, etag: str = "") -> bytes:
        """The bytes of a blob, or those from `start` to before `end`; only if it still has the ETag, if one is given."""
        how: dict[str, Any] = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified} if etag else {}
        how["decompress"] = False  # what is stored with a content encoding is a file as it is
        length = None if start is None or end is None else end - start
        with translated():
            blob = self._client.download_blob(path.removeprefix(f"{self._name}/"), start, length, **how)
            return bytes(blob.readall())

    def isfile(self, path: str) -> bool:
        """Whether there is a blob of this name, and not for a folder."""
        with translated():
            blob = self._client.get_blob_client(path.removeprefix(f"{self._name}/"))
            return bool(blob.exists()) and _info(blob.get_blob_properties())["type"] == "file"

    def close(self) -> None:
        """End the connections."""
        self._client.close()


def credential(access: Access) -> Any:
    """The credential as Azure's library takes it; None for anonymous access."""
    match access.kind:
        case "key":
            return AzureNamedKeyCredential(access.account, access.secret)
        case "sas":
            return AzureSasCredential(access.secret)
        case "managed_identity":
            return ManagedIdentityCredential(client_id=access.client_id or None)
        case "default":
            return DefaultAzureCredential(managed_identity_client_id=access.client_id or None)
        case "anonymous":
            return None


@contextmanager
def translated() -> Iterator[None]:
    """Raises AzureFault in place of the library's errors.

    Their texts can hold the URL of a request, and that a SAS token: so they are not kept as the cause.
    """
    try:
        yield
    except AzureError as error:
        fault = _fault(error)
    else:
        return
    raise fault from None


def _fault(error: AzureError) -> AzureFault:
    text = _SECRET.sub(r"\1=…", _TARGET.sub("", str(error)))
    status = int(error.status_code or 0) if isinstance(error, HttpResponseError) else 0
    if status in (0, 200, 206):  # no answer, or the beginning of one
        return AzureFault(text, passing=status != 0 or not _CERTAIN.search(text))
    code = getattr(error, "error_code", None) or ""
    return AzureFault(text, str(getattr(code, "value", code)), status)


def _info(blob: BlobProperties) -> dict[str, Any]:
    md5 = blob.content_settings.content_md5
    folder = any(name.lower() == "hdi_isfolder" and value == "true" for name, value in (blob.metadata or {}).items())
    return {
        "size": blob.size,
        "type": "directory" if folder else "file",
        "etag": blob.etag,
        "archived": blob.blob_tier == "Archive",
        "md5": bytes(md5).hex() if md5 and blob.blob_type == "BlockBlob" else "",
    }


def _transport() -> RequestsTransport:
    """Keeps as many connections as a download has threads."""
    session = requests.Session()
    for protocol in ("http://", "https://"):
        session.mount(protocol, HTTPAdapter(pool_connections=2, pool_maxsize=THREADS))
    return RequestsTransport(session=session, connection_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT)
