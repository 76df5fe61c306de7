"""The plugin's hooks. Nothing here imports a library of S3's."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.hookspecs import hookimpl
from moorage.storage import Storage
from moorage_s3.storage import S3Storage


@hookimpl
def storage_schemes() -> Iterable[type[Storage]]:
    """The scheme "s3"."""
    return (S3Storage,)
