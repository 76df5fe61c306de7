"""The plugin's hook. Nothing here imports Azure's libraries."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.hookspecs import hookimpl
from moorage.storage import Storage
from moorage_azure.storage import AzureStorage


@hookimpl
def storage_schemes() -> Iterable[type[Storage]]:
    """The schemes "as", "az", "abfs" and "abfss"."""
    return [AzureStorage]
