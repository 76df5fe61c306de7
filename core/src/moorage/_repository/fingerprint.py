"""Fingerprints: short texts that change when what would be loaded does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from moorage._repository.layout import CONFIG_FILES, CONFIG_FOLDER, Folder, transient
from moorage.storage import Entry


def of_folder(folder: Folder) -> str:
    """Of a model's folder as a whole: its files and the set of its versions."""
    return _digest(_lines(folder.entries), ",".join(map(str, folder.versions)))


def of_version(folder: Folder, version: int, config: bytes) -> str:
    """Of one version: the configuration's content, the version's files, and the files that all versions share.

    Other versions, and configurations that are not used, do not count.
    """
    own = f"{version}/"
    others = tuple(f"{other}/" for other in folder.versions if other != version)
    used = (
        entry
        for entry in folder.entries
        if entry.path.startswith(own) or not (_is_config(entry.path) or entry.path.startswith(others))
    )
    return _digest(_lines(used), hashlib.sha256(config).hexdigest())


def _is_config(path: str) -> bool:
    return path in CONFIG_FILES or path.startswith(f"{CONFIG_FOLDER}/")


def _lines(entries: Iterable[Entry]) -> str:
    return "\n".join(
        f"{path}\t{size}\t{fingerprint}"
        for path, size, fingerprint, is_dir in entries
        if (not is_dir or fingerprint) and not transient(path)
    )


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()
