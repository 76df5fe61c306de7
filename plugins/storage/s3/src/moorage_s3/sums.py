"""Check sums of what has come: the ETag of an object that was put in one piece and not encrypted with a key of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from moorage.errors import StorageError
from moorage.storage import Entry
from moorage.storage.transfer import THREADS, verify

_MD5: Final = re.compile(r"[0-9a-f]{32}")


def check(entries: Sequence[Entry], etags: Sequence[str], target: Path, encrypted: Collection[str]) -> None:
    """Compare files with the ETags that are MD5 sums: those of that shape, unless the object is one of the `encrypted`.

    Raises StorageError for the first file that differs.
    """
    known = [
        entry._replace(checksum=f"md5:{etag}")
        for entry, etag in zip(entries, etags, strict=True)
        if _MD5.fullmatch(etag) and entry.path not in encrypted
    ]
    with ThreadPoolExecutor(min(THREADS, len(known) or 1), thread_name_prefix="moorage-sums") as threads:
        for _ in threads.map(partial(_check, target), known):
            pass


def _check(target: Path, entry: Entry) -> None:
    try:
        verify(entry, target / entry.path)
    except StorageError as error:
        raise StorageError(f"{error}. If this store's ETags are no MD5 sums, set MOORAGE_S3_CHECK_MD5=false") from error
