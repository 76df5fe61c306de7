"""A page of a container's listing, as Azure answers it in XML."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree as ET


def blobs(page: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    """The name of each blob, and "size", "type" ("file" or "directory"), "etag", "archived", and "md5" (empty if not known).

    Azure's own library takes many times as long for it, which matters where thousands of blobs are listed every few seconds.
    """
    for blob in ET.fromstring(page).iterfind("Blobs/Blob"):  # noqa: S314 (the library has parsed it before)
        name = blob.find("Name")
        properties = blob.find("Properties")
        if name is not None and name.text and properties is not None:
            told = {item.tag: item.text or "" for item in properties}
            yield unquote(name.text) if name.get("Encoded") == "true" else name.text, _info(told, blob.find("Metadata"))


def _info(told: dict[str, str], metadata: ET.Element | None) -> dict[str, Any]:
    folder = told.get("ResourceType") == "directory" or any(
        item.tag.lower() == "hdi_isfolder" and item.text == "true" for item in (metadata if metadata is not None else ())
    )
    return {
        "size": int(told.get("Content-Length") or 0),
        "type": "directory" if folder else "file",
        "etag": told.get("Etag", "").strip('"'),
        "archived": told.get("AccessTier") == "Archive",
        "md5": _md5(told.get("Content-MD5", "")) if told.get("BlobType") == "BlockBlob" else "",
    }


def _md5(text: str) -> str:
    """In hexadecimal; empty if it is none."""
    try:
        sum_ = base64.b64decode(text, validate=True)
    except binascii.Error:
        return ""
    return sum_.hex() if len(sum_) == 16 else ""
