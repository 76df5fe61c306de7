"""EXPLICIT: models are loaded and unloaded when a client asks, and those named by `--load-model` at start."""

from __future__ import annotations

from moorage.control import ControlMode, LoadOptions, ModelId, Outcome, Snapshot
from moorage.errors import ErrorRecord, InvalidArgument, NotFound

ALL = "*"


class Explicit(ControlMode):
    name = "explicit"
    clients_decide = True

    async def start(self) -> list[Outcome]:
        names = list(dict.fromkeys(self.context.initial_models))
        if ALL in names and len(names) > 1:
            raise InvalidArgument("--load-model=* loads every model and cannot be combined with another --load-model")
        snapshot = await self.context.scan()
        snapshot.require_readable()
        if names == [ALL]:
            return await self.context.want([model for model, found in snapshot.models.items() if found.problem is None])
        missing = [Outcome(ModelId(name), ErrorRecord.of(_missing(name))) for name in names if not snapshot.named(name)]
        return missing + await self.context.want([found.id for name in names for found in snapshot.named(name)])

    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        snapshot = await self.context.scan()
        ids = self._ids(snapshot, name)
        if not ids:
            if not options.files:
                snapshot.require_readable()
                raise _missing(name)
            ids = [ModelId(name)]
        return await self.context.want(ids, options)

    async def reload(self) -> list[Outcome]:
        snapshot = await self.context.scan()
        return await self.context.want(sorted(self.context.wanted() & snapshot.models.keys()))

    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        ids = sorted(model for model in self.context.wanted() if name in (model.name, str(model)))
        return await self.context.release(ids, dependents=dependents, versions=versions)

    @staticmethod
    def _ids(snapshot: Snapshot, name: str) -> list[ModelId]:
        """The models that a name means: all of that name, or the one that "namespace::name" says."""
        return [model for model in snapshot.models if name in (model.name, str(model))]


def _missing(name: str) -> NotFound:
    return NotFound(f"model '{name}' is in no model repository; check the name, or add a folder '{name}' to a repository")
