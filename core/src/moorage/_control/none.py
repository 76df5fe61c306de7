"""NONE: all models of the repositories are loaded at start; clients have no say, later changes are not seen."""

from __future__ import annotations

from moorage.control import ControlMode, LoadOptions, Outcome
from moorage.errors import Unavailable


class NoneMode(ControlMode):
    name = "none"

    async def start(self) -> list[Outcome]:
        snapshot = await self.context.scan()
        snapshot.require_readable()
        return await self.context.want([model for model, found in snapshot.models.items() if found.problem is None])

    async def load(self, name: str, options: LoadOptions) -> list[Outcome]:
        raise self._refusal("load", name)

    async def unload(self, name: str, *, dependents: bool, versions: frozenset[int] = frozenset()) -> list[Outcome]:
        raise self._refusal("unload", name)

    @staticmethod
    def _refusal(action: str, name: str) -> Unavailable:
        mode = "the model control mode is NONE, which loads everything at start and nothing later"
        return Unavailable(f"cannot {action} model '{name}': {mode}; start the server with --model-control-mode=explicit")
