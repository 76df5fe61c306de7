"""What a storage scheme must offer: one listing, reads and downloads.

`moorage.storage.fsspec` implements it once for everything that fsspec can reach.
"""

from moorage.storage.base import UNREADABLE, Entry, InPlaceStorage, Progress, Storage, unseen

__all__ = ["UNREADABLE", "Entry", "InPlaceStorage", "Progress", "Storage", "unseen"]
