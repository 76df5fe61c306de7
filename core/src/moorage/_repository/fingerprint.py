"""Fingerprints: short texts that change when what would be loaded does."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from attrs import evolve

from moorage._repository.layout import CONFIG_FILES, CONFIG_FOLDER, SUMS, Folder, transient
from moorage.config.parsed import ParsedConfig
from moorage.control import ModelParts
from moorage.storage import Entry


def of_folder(folder: Folder) -> str:
    """Of a model's folder as a whole: its files and the set of its versions."""
    return _digest(_lines(folder.entries), ",".join(map(str, folder.versions)))


def of_parts(folder: Folder) -> ModelParts:
    """Of each version's folder, and of all that is in none."""
    by_folder: dict[str, list[Entry]] = {}
    for entry in folder.entries:
        head, slash, _ = entry.path.partition("/")
        by_folder.setdefault(head if slash else "", []).append(entry)
    own = {version: by_folder.pop(str(version), []) for version in folder.versions}
    versions = {version: _digest(_lines(entries)) for version, entries in own.items()}
    sums = {f"{version}/{SUMS}": version for version in folder.versions}
    summed = {sums[entry.path] for entries in own.values() for entry in entries if entry.path in sums and not entry.is_dir}
    shared = _digest(_lines(entry for entries in by_folder.values() for entry in entries))
    return ModelParts(shared, versions, frozenset(summed))


def of_version(folder: Folder, version: int, config: bytes) -> str:
    """Of one version: the configuration's content, the version's files, and the files that all versions share.

    Other versions, configurations that are not used, and the version's list of check sums do not count.
    """
    own = f"{version}/"
    others = tuple(f"{other}/" for other in folder.versions if other != version)
    used = (
        entry
        for entry in folder.entries
        if (entry.path.startswith(own) and entry.path != own + SUMS)
        or not (entry.path.startswith((own, *others)) or _is_config(entry.path))
    )
    return _digest(_lines(used), hashlib.sha256(config).hexdigest())


def of_identity(folder: Folder, version: int, parsed: ParsedConfig) -> str:
    """Of one version without its instance groups: its files, and what its configuration says about all else."""
    bare = evolve(parsed.config, instance_group=())
    return _digest(of_version(folder, version, b""), repr(bare), repr(sorted(parsed.given - {"instance_group"})))


def _is_config(path: str) -> bool:
    return path in CONFIG_FILES or path.startswith(f"{CONFIG_FOLDER}/")


def _lines(entries: Iterable[Entry]) -> str:
    return "\n".join(
        f"{path}\t{size}\t{fingerprint}"
        for path, size, fingerprint, is_dir, _ in entries
        if (not is_dir or fingerprint) and not transient(path)
    )


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(errors="surrogateescape"), digest_size=16).hexdigest()
