"""Whether the server says that it is ready: a policy over how the models stand."""

from __future__ import annotations

import enum
from collections.abc import Collection

from attrs import frozen

from moorage.control import ModelId


class ReadinessPolicy(enum.Enum):
    """Which models the server waits for."""

    ALL = "all"
    """Every model that is wanted: none has failed, none is loaded for the first time."""
    INITIAL = "initial"
    """The models of the start; those that are loaded later do not count."""
    NONE = "none"
    """No model: the server is ready when it has started."""


@frozen
class Standing:
    """How the models stand at one moment. `coming` are loaded for the first time, `failed` have no version that serves."""

    serving: Collection[ModelId]
    coming: Collection[ModelId] = ()
    failed: Collection[ModelId] = ()


@frozen
class Readiness:
    """The rule. `required` are names, with or without namespace, of models that must serve whatever the policy says."""

    policy: ReadinessPolicy = ReadinessPolicy.ALL
    required: tuple[str, ...] = ()

    def awaited(self, standing: Standing, initial: Collection[ModelId] = ()) -> list[str]:
        """The models that keep the server from being ready, by name; `initial` are those of the start."""
        missing = {str(model) for model in (*standing.coming, *standing.failed) if self._counts(model, initial)}
        names = {name for model in standing.serving for name in (model.name, str(model))}
        return sorted(missing.union(name for name in self.required if name not in names))

    def _counts(self, model: ModelId, initial: Collection[ModelId]) -> bool:
        if self.policy is ReadinessPolicy.INITIAL:
            return model in initial
        return self.policy is ReadinessPolicy.ALL
