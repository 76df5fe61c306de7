"""What is to be loaded: the values that pass from the repository to the lifecycle and on to the loader."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from moorage.backend import VersionFiles
from moorage.config.parsed import ParsedConfig
from moorage.control import ModelId
from moorage.storage import Entry, Storage


@frozen(eq=False)
class VersionSpec:
    """One version of a model as it is to be loaded.

    Two specs with the same `fingerprint` would load the same thing: a version whose spec keeps its fingerprint is carried over
    by a rollout. Two with the same `identity` differ at most in their instance groups; an empty one is like no other.
    `parsed` is the configuration as written plus what discovery found (backend, platform, file name).
    """

    id: ModelId
    version: int
    parsed: ParsedConfig
    files: VersionFiles
    fingerprint: str
    storage: Storage
    repository: str
    """URL of the repository that holds the model."""
    folder: str
    """The model's folder below the repository."""
    identity: str = ""
    entries: tuple[Entry, ...] = ()
    """The files of this version and those that all versions share, paths below the model's folder."""


@frozen(eq=False)
class ModelSpec:
    """A model as it is wanted: its versions by the version policy, and the models that must serve before it."""

    id: ModelId
    versions: Mapping[int, VersionSpec]
    dependencies: frozenset[str] = field(factory=frozenset)
    """Names of the models that an ensemble's steps use."""
