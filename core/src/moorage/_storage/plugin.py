"""The built-in plugin for local repositories."""

from __future__ import annotations

from collections.abc import Iterable

from moorage._storage.local import LocalStorage
from moorage.hookspecs import hookimpl
from moorage.storage import Storage


@hookimpl
def storage_schemes() -> Iterable[type[Storage]]:
    return (LocalStorage,)
