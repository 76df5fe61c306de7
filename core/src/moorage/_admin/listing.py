"""The repository index: what the repositories hold, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from moorage._admin.values import IndexEntry
from moorage._lifecycle.status import VersionStatus
from moorage.control import FoundModel, ModelId, Snapshot


def entries(snapshot: Snapshot, statuses: Iterable[VersionStatus], kept: Collection[ModelId]) -> list[IndexEntry]:
    """The lines of the index, by name, namespace and version.

    A model that was tried is shown with the states of its versions, one that cannot be loaded as it stands with the reason,
    any other by its name. `kept` are shown although they are in no repository. A name that two namespaces have is shown with
    its namespace: NAMESPACE::NAME, as requests must give it.
    """
    tried: dict[ModelId, list[VersionStatus]] = {}
    for status in statuses:
        tried.setdefault(status.id, []).append(status)
    unknown = tried if snapshot.unreadable else ()  # nothing is known of what those repositories hold
    models = sorted({*snapshot.models, *(model for model in tried if model in kept or model in unknown)})
    names = _names(models)
    return [line for model in models for line in _lines(names[model], tried.get(model, ()), snapshot.models.get(model))]


def _names(models: Collection[ModelId]) -> Mapping[ModelId, str]:
    count = Counter(model.name for model in models)
    return {model: model.name if count[model.name] == 1 else str(model) for model in models}


def _lines(name: str, tried: Collection[VersionStatus], found: FoundModel | None) -> Iterator[IndexEntry]:
    problem = found.problem if found is not None else None
    if problem is not None and all(status.version is not None for status in tried):
        yield IndexEntry(name, "", "UNAVAILABLE", problem.message)
    for status in tried:
        yield IndexEntry(name, "" if status.version is None else str(status.version), status.state, status.reason)
    if problem is None and not tried:
        yield IndexEntry(name)
