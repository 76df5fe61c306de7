"""What is wanted of the models now, and which of them nobody needs any more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from attrs import frozen

from moorage._repository.spec import ModelSpec
from moorage.control import ModelId
from moorage.errors import ErrorRecord

Reading = ModelSpec | ErrorRecord
"""What a look into a repository made of a model: what is to be loaded, or why it cannot be."""


@frozen(eq=False)
class Wish:
    """The latest load of one model.

    `ticket` grows with each load that is asked for. `named` says that somebody asked for this model itself, not only for one
    that uses it. `listed` is false for a model that is made of the files of a request.
    """

    ticket: int
    named: bool
    listed: bool
    reading: Reading

    @property
    def spec(self) -> ModelSpec | None:
        """What is to be loaded, None if the model could not be read."""
        return self.reading if isinstance(self.reading, ModelSpec) else None


def resolve(name: str, user: ModelId, models: Collection[ModelId]) -> ModelId | None:
    """The one model that a step of `user` means by a name: that in its own namespace first. None if there is no such one."""
    beside = ModelId(name, user.namespace)
    if beside in models:
        return beside
    found = [model for model in models if name in {model.name, str(model)}]
    return found[0] if len(found) == 1 else None


def orphans(going: Iterable[ModelId], uses: Mapping[ModelId, Collection[ModelId]], named: Collection[ModelId]) -> list[ModelId]:
    """What nobody needs once the models `going` are gone: used by them, not asked for by name, and not used by another.

    `uses` maps each wanted model to those it uses itself.
    """
    leaving = set(going)
    found: list[ModelId] = []
    while free := sorted(set(_freed(leaving, uses)) - leaving - set(named)):
        leaving.update(free)
        found += free
    return found


def _freed(leaving: Collection[ModelId], uses: Mapping[ModelId, Collection[ModelId]]) -> Iterator[ModelId]:
    kept = {part for user, parts in uses.items() if user not in leaving for part in parts}
    for model in leaving:
        yield from (part for part in uses.get(model, ()) if part not in kept)


def beside(serving: ModelSpec | None, spec: ModelSpec) -> ModelSpec:
    """The versions of `spec` and, untouched, the others that serve."""
    if serving is None:
        return spec
    return ModelSpec(spec.id, {**serving.versions, **spec.versions}, serving.dependencies | spec.dependencies)


def without(serving: ModelSpec, versions: Collection[int]) -> ModelSpec:
    """What is left of the versions that serve."""
    left = {version: spec for version, spec in serving.versions.items() if version not in versions}
    return ModelSpec(serving.id, left, serving.dependencies)
