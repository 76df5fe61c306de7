"""The plugin's hooks. Nothing here imports gcsfs or google-auth."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.hookspecs import hookimpl
from moorage.storage import Storage
from moorage_gcs.storage import GcsStorage


@hookimpl
def storage_schemes() -> Iterable[type[Storage]]:
    """The schemes "gs" and "gcs"."""
    return [GcsStorage]
