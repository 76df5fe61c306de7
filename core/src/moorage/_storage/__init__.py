"""Where models come from: repositories on the local file system, and copies of those that are elsewhere."""

from moorage._storage.cache import Cache
from moorage._storage.copies import Copies, Copy
from moorage._storage.local import LocalStorage
from moorage._storage.progress import Reporter
from moorage._storage.scratch import Scratch, mounted
from moorage._storage.sizes import bytes_of
from moorage._storage.urls import Location, split
from moorage._storage.wanted import Wanted

__all__ = [
    "Cache",
    "Copies",
    "Copy",
    "LocalStorage",
    "Location",
    "Reporter",
    "Scratch",
    "Wanted",
    "bytes_of",
    "mounted",
    "split",
]
