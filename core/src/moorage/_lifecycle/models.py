"""The records of all models, and how they depend on each other now."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Generic

from moorage._lifecycle import graph
from moorage._lifecycle.graph import Part, PartView
from moorage._lifecycle.records import Model, S
from moorage._lifecycle.transitions import State
from moorage.control import ModelId
from moorage.errors import ErrorRecord

_USING: Final = frozenset({State.READY, State.DRAINING, State.UNLOADING})


class Models(Generic[S]):
    """Every model that was ever wanted or failed."""

    def __init__(self) -> None:
        self._models: dict[ModelId, Model[S]] = {}
        self._composite: dict[ModelId, Model[S]] = {}
        self.leaving: dict[ModelId, Model[S]] = {}
        """To be unloaded once nothing that depends on them is in memory."""

    def __iter__(self) -> Iterator[Model[S]]:
        """By name."""
        return (self._models[model_id] for model_id in sorted(self._models))

    def find(self, model_id: ModelId) -> Model[S] | None:
        return self._models.get(model_id)

    def ensure(self, model_id: ModelId) -> Model[S]:
        if model_id not in self._models:
            self._models[model_id] = Model(model_id)
        return self._models[model_id]

    def mark_composite(self, model: Model[S]) -> None:
        """Remember that a model depends on others."""
        self._composite[model.id] = model

    def parts(self, model: Model[S], names: frozenset[str]) -> dict[str, PartView]:
        """How the models of these names stand, seen from a model that depends on them."""
        return {name: self._part(self._resolve(name, model.id)) for name in names}

    def obstacle(self, model: Model[S], parts: dict[str, PartView]) -> ErrorRecord | None:
        """Why a model cannot be loaded, as its parts stand."""
        circle = graph.cycle(model.id, self._used)
        return graph.cycle_error(circle) if circle else graph.refusal(model.id, parts)

    def waiting(self, part: Model[S]) -> list[Model[S]]:
        """The models whose rollout depends on `part`."""
        return [model for model in self._composite.values() if model.rollout and self._names(model, model.uses, part)]

    def using(self, part: Model[S]) -> list[Model[S]]:
        """The models with versions in memory that call `part` when they serve."""
        return [
            model
            for model in self._composite.values()
            if any(self._names(model, unit.uses, part) for unit in model.units if unit.state in _USING)
        ]

    def blocked_by(self, part: Model[S]) -> list[Model[S]]:
        """The models that `part` kept from serving, perhaps among others.

        Those that went because another part was unloaded, and have not failed, are left out while that part is missing.
        """
        return [
            model
            for model in self._composite.values()
            if model.blocked and model.rollout is None and self._names(model, _wanted(model), part)
            if model.failure or not self.obstacle(model, self.parts(model, _wanted(model)))
        ]

    def _names(self, user: Model[S], names: frozenset[str], part: Model[S]) -> bool:
        return any(part.id in self._resolve(name, user.id) for name in names)

    def _used(self, model_id: ModelId) -> list[ModelId]:
        model = self._models.get(model_id)
        return [used for name in sorted(model.uses) for used in self._resolve(name, model_id)] if model else []

    def _resolve(self, name: str, dependent: ModelId) -> tuple[ModelId, ...]:
        beside = ModelId(name, dependent.namespace)
        if beside in self._models:
            return (beside,)
        return graph.resolve(name, (model_id for model_id, model in self._models.items() if not model.idle))

    def _part(self, ids: tuple[ModelId, ...]) -> PartView:
        if len(ids) != 1:
            return PartView(Part.AMBIGUOUS if ids else Part.ABSENT)
        model = self._models[ids[0]]
        error = model.problem or model.failure
        if model.id in self.leaving:
            return PartView(Part.LEAVING)
        if model.rollout is not None:
            return PartView(Part.COMING)
        if model.ready:
            return PartView(Part.SERVING)
        return PartView(Part.FAILED, error.message) if error else PartView(Part.ABSENT)


def _wanted(model: Model[S]) -> frozenset[str]:
    return model.wanted.dependencies if model.wanted else frozenset()
