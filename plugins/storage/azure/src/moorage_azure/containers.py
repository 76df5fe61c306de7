"""Containers through Azure's library: the only module that imports it, and that knows its errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import requests
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential, ManagedIdentityCredential
from azure.storage.blob import ContainerClient
from requests.adapters import HTTPAdapter

from moorage.storage.transfer import THREADS
from moorage_azure.credentials import Access
from moorage_azure.faults import AzureFault
from moorage_azure.listing import blobs

CONNECTIONS: Final = 8 * THREADS
"""Kept open at most."""
CONNECT_TIMEOUT: Final = 10
"""Seconds to reach the service."""
READ_TIMEOUT: Final = 30
"""Seconds between two pieces of an answer."""

_SILENT: Final = logging.CRITICAL + 1
_TARGET: Final = re.compile(r"with url: \S+ ?")
_SECRET: Final = re.compile(r"(?i)\b(sig|code|client_secret|assertion)=[^&\s'\"]+")


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
        pages: list[bytes] = []

        def keep(answer: PipelineResponse[Any, Any]) -> None:
            if answer.http_response.status_code == 200:
                pages.append(answer.http_response.body())

        with translated():
            start = f"{prefix}/" if prefix else None
            for _ in self._client.list_blob_names(name_starts_with=start, include=["metadata"], raw_response_hook=keep):
                pass
        return {f"{self._name}/{name}": info for page in pages for name, info in blobs(page)}

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
            return bool(blob.exists()) and "hdi_isfolder" not in map(str.lower, blob.get_blob_properties().metadata)

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
        certain = isinstance(error, ClientAuthenticationError) or "CERTIFICATE_VERIFY_FAILED" in text
        return AzureFault(text, passing=not certain)
    code = getattr(error, "error_code", None) or ""
    return AzureFault(text, str(getattr(code, "value", code)), status)


def _transport() -> RequestsTransport:
    """Keeps its connections, also while several models are brought at once."""
    _quieten()
    session = requests.Session()
    for protocol in ("http://", "https://"):
        session.mount(protocol, HTTPAdapter(pool_connections=2, pool_maxsize=CONNECTIONS))
    return RequestsTransport(session=session, connection_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT)


def _quieten() -> None:
    """Keep out of the log what urllib3 says at level DEBUG: URLs, which can hold a SAS token. And what Azure's library says of
    each broken answer, at any level: it raises an error as well.
    """
    for name, level in (("urllib3", logging.WARNING), ("azure.core", _SILENT), ("azure.storage", _SILENT)):
        library = logging.getLogger(name)
        if library.level == logging.NOTSET:
            library.setLevel(level)
