"""The objects of a bucket, as far as a repository needs them."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

import urllib3
from attrs import Factory, define
from botocore.exceptions import HTTPClientError, IncompleteReadError

from moorage.errors import StorageError
from moorage.storage.transfer import Incomplete

logger = logging.getLogger(__name__)

PIECE: Final = 1 << 20
"""Bytes that are read at once; so much of each part of a download is in memory."""
_BROKEN: Final = (HTTPClientError, IncompleteReadError, urllib3.exceptions.HTTPError, OSError)
"""What a body ends with that does not come to its end."""


@define(eq=False)
class Objects:
    """Lists and reads the objects of one bucket. Names are whole keys. Raises what botocore raises; `Incomplete` for a body."""

    client: Any
    bucket: str
    encrypted: set[str] = Factory(set)
    """Keys of objects whose ETag, as reading them has shown, is no sum of their content."""
    _warned: bool = False

    @property
    def secure(self) -> bool:
        """Whether requests go over TLS."""
        return str(self.client.meta.endpoint_url).startswith("https:")

    @property
    def region(self) -> str:
        """The region that requests are signed for."""
        return str(self.client.meta.region_name)

    def find(self, root: str, *, detail: bool = True) -> Mapping[str, Mapping[str, Any]]:
        """Everything below a key, or the one object that has that key; one request for a thousand objects."""
        found = {one["Key"]: {**one, "size": one["Size"]} for one in self._listed(f"{root}/" if root else "")}
        if found or not root:
            return found
        alone = self.client.list_objects_v2(Bucket=self.bucket, Prefix=root, MaxKeys=1).get("Contents", ())
        return {one["Key"]: {**one, "size": one["Size"]} for one in alone if one["Key"] == root}

    def cat_file(self, key: str) -> bytes:
        """The content of an object."""
        return b"".join(_pieces(self.client.get_object(Bucket=self.bucket, Key=key)["Body"]))

    def pieces(self, key: str, etag: str, start: int, end: int) -> Iterator[bytes]:
        """The bytes of an object from `start` to before `end`, if it still has this ETag (empty: whatever it has)."""
        condition = {"IfMatch": f'"{etag}"'} if etag else {}
        answer = self.client.get_object(Bucket=self.bucket, Key=key, Range=f"bytes={start}-{end - 1}", **condition)
        if answer["ResponseMetadata"]["HTTPStatusCode"] != 206 and (start or answer.get("ContentLength") != end):
            answer["Body"].close()
            raise StorageError(f"'{key}' in bucket '{self.bucket}': the store does not answer requests for parts of a file")
        if answer.get("SSECustomerAlgorithm") or answer.get("ServerSideEncryption", "AES256") != "AES256":
            self.encrypted.add(key)
        return _pieces(answer["Body"])

    def close(self) -> None:
        self.client.close()

    def _listed(self, prefix: str) -> Iterator[Mapping[str, Any]]:
        for page in self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix):
            self._compare_region(page["ResponseMetadata"].get("HTTPHeaders", {}).get("x-amz-bucket-region", ""))
            yield from page.get("Contents", ())

    def _compare_region(self, region: str) -> None:
        if region and region != self.region and not self._warned:
            self._warned = True
            logger.warning(
                "bucket '%s' is in region %s: set AWS_DEFAULT_REGION=%s (now %s), which spares redirected requests",
                self.bucket,
                region,
                region,
                self.region,
            )


def _pieces(body: Any) -> Iterator[bytes]:
    try:
        yield from body.iter_chunks(PIECE)
    except _BROKEN as error:
        raise Incomplete(f"the store has broken off its answer ({type(error).__name__})") from error
    finally:
        body.close()
