"""The built-in storage: repositories on the local file system, and what repository URLs mean."""

from moorage._storage.local import LocalStorage
from moorage._storage.urls import Location, split

__all__ = ["LocalStorage", "Location", "split"]
