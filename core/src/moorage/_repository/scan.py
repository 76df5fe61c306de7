"""One look at the repositories: a listing of each, made into models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property, partial

from attrs import define, evolve, field, frozen

from moorage._repository.fingerprint import of_folder, of_parts
from moorage._repository.layout import CONFIG_FILES, Folder, Layout, read_layout, transient
from moorage.control import FoundModel, ModelId, Snapshot
from moorage.errors import ConfigError, ErrorRecord, Fault, InvalidArgument, MoorageError, StorageError
from moorage.storage import UNREADABLE, Entry, Storage


@frozen
class Repository:
    """A place that models come from. Whatever goes wrong with its storage is raised as a MoorageError."""

    url: str
    storage: Storage = field(eq=False)

    def list(self) -> tuple[Entry, ...]:
        """Everything in it, in one listing."""
        with self._translated():
            return self.storage.list(self.url)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with self._translated():
            return self.storage.read(self.url, path)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except MoorageError:
            raise
        except Exception as error:
            storage = type(self.storage).__name__
            raise StorageError(f"model repository {self.url}: {storage} failed: {type(error).__name__}: {error}") from error


@frozen(eq=False)
class ModelFolder:
    """A model as one listing shows it; nothing of it has been read. `problem` says why it cannot be loaded as it stands."""

    id: ModelId
    repository: Repository
    folder: Folder
    fingerprint: str
    problem: MoorageError | None = None

    def public(self) -> FoundModel:
        """What control modes see of it."""
        record = None if self.problem is None else ErrorRecord.of(self.problem)
        parts = partial(of_parts, self.folder) if self.problem is None else None
        return FoundModel(self.id, self.repository.url, self.folder.versions, self.fingerprint, record, parts)


@define(eq=False, slots=False)
class RepositorySnapshot:
    """The repositories at one moment, never changed afterwards."""

    models: Mapping[ModelId, ModelFolder]
    unreadable: Mapping[str, MoorageError] = field(factory=dict)

    def public(self) -> Snapshot:
        """The same for control modes."""
        return self._public

    @cached_property
    def _public(self) -> Snapshot:
        unreadable = {url: ErrorRecord.of(error) for url, error in self.unreadable.items()}
        return Snapshot({key: model.public() for key, model in self.models.items()}, unreadable)


def scan(repositories: tuple[Repository, ...], *, namespacing: bool) -> RepositorySnapshot:
    """List every repository once, several at the same time. One that cannot be read is recorded and hides no other."""
    found: dict[ModelId, list[ModelFolder]] = {}
    unreadable: dict[str, MoorageError] = {}
    for repository, layout in zip(repositories, _layouts(repositories), strict=True):
        if isinstance(layout, MoorageError):
            unreadable[repository.url] = layout
            continue
        for folder in layout.folders.values():
            key = ModelId(folder.name, repository.url if namespacing else "")
            model = ModelFolder(key, repository, folder, of_folder(folder), _problem(folder, repository))
            found.setdefault(key, []).append(model)
    models = {key: same[0] if len(same) == 1 else _duplicate(same) for key, same in found.items()}
    return RepositorySnapshot(models, unreadable)


def _layouts(repositories: tuple[Repository, ...]) -> list[Layout | MoorageError]:
    if len(repositories) < 2:
        return [_layout(repository) for repository in repositories]
    with ThreadPoolExecutor(min(len(repositories), 16), thread_name_prefix="moorage-scan") as threads:
        return list(threads.map(_layout, repositories))


def _layout(repository: Repository) -> Layout | MoorageError:
    try:
        layout = read_layout(repository.list())
    except MoorageError as error:
        return error
    return StorageError(f"model repository {repository.url}: {layout.mistake}") if layout.mistake else layout


def _problem(folder: Folder, repository: Repository) -> MoorageError | None:
    unreadable = next((e for e in folder.entries if e.fingerprint.startswith(UNREADABLE) and not transient(e.path)), None)
    where = f"{repository.url}/{folder.name}"
    if unreadable is not None:
        reason = unreadable.fingerprint.removeprefix(UNREADABLE)
        return StorageError(f"model '{folder.name}': cannot read {f'{where}/{unreadable.path}'.rstrip('/')}: {reason}")
    misplaced = next((e.path for e in folder.entries if e.is_dir and e.path in CONFIG_FILES), None)
    if misplaced is not None:
        fault = Fault("this is a folder, not a file", f"{where}/{misplaced}", advice="replace it by the configuration file")
        return ConfigError([fault], folder.name)
    if folder.versions or folder.configured:
        return None
    return ConfigError([Fault(_bare(folder), where, advice=_bare_advice(folder))], folder.name)


def _bare(folder: Folder) -> str:
    skipped = "".join(f"; '{name}' was skipped, {why}" for name, why in sorted(folder.skipped.items()))
    return f"this folder is no model: it has neither a configuration nor a version folder{skipped}"


def _bare_advice(folder: Folder) -> str:
    leading = sorted(name for name in folder.skipped if name.isascii() and name.isdigit())
    if leading:
        return f"rename '{leading[0]}' to '{int(leading[0])}'"
    return f"put the model's files into '{folder.name}/1/', or move the folder out of the repository"


def _duplicate(same: list[ModelFolder]) -> ModelFolder:
    first = same[0]
    problem = InvalidArgument(
        f"model '{first.id.name}' is in more than one repository, {' and '.join(model.repository.url for model in same)}: "
        "remove or rename all but one, or start the server with --model-namespacing=true"
    )
    fingerprint = "+".join(model.fingerprint for model in same)
    return evolve(first, folder=evolve(first.folder, versions=()), fingerprint=fingerprint, problem=problem)
