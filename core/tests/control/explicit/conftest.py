"""Model control over repositories on disk, and a lifecycle whose loads and closes a test can hold up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import define, field

from moorage._control import ControlSettings, ModelControl
from moorage._control.explicit import Explicit
from moorage._lifecycle import Manager, ServingMap
from moorage._plugins import Registry
from moorage._repository import Repositories
from moorage._repository.spec import VersionSpec
from moorage._storage import LocalStorage
from moorage.backend import Backend, LoadContext, LoadedModel, ModelMatch, VersionFiles
from moorage.control import LoadOptions

TENSORS = (
    '"input": [{"name": "X", "data_type": "TYPE_FP32", "dims": [1]}], '
    '"output": [{"name": "Y", "data_type": "TYPE_FP32", "dims": [1]}]'
)


class MadeUp(Backend):
    name: ClassVar[str] = "made-up"
    default_model_filename: ClassVar[str] = "model"

    def load(self, context: LoadContext) -> LoadedModel:
        raise NotImplementedError


def discover(files: VersionFiles) -> ModelMatch | None:
    return ModelMatch("made-up", "", "model") if "model" in files.names else None


@define(eq=False)
class Loaded:
    """What stands for a loaded version."""

    spec: VersionSpec
    content: str
    closing: threading.Event
    closed: bool = False

    def close(self) -> None:
        assert self.closing.wait(10)
        self.closed = True


def ensemble(*steps: str) -> str:
    """The configuration of a chain of steps that copies X to Y."""
    names = ["X", *(f"t{number}" for number in range(1, len(steps))), "Y"]
    made = [
        {"model_name": step, "model_version": -1, "input_map": {"X": names[at]}, "output_map": {"Y": names[at + 1]}}
        for at, step in enumerate(steps)
    ]
    return f'{{"platform": "ensemble", {TENSORS}, "ensemble_scheduling": {json.dumps({"step": made})}}}'


@define(eq=False)
class World:
    """Repositories and the server's control over them. A version whose file says "broken..." fails to load."""

    CONFIG: ClassVar[str] = f'{{"backend": "made-up", {TENSORS}}}'
    ALL_VERSIONS: ClassVar[str] = f'{{"backend": "made-up", "version_policy": {{"all": {{}}}}, {TENSORS}}}'

    root: Path
    control: ModelControl
    manager: Manager[Any]
    serving: ServingMap[Any]
    loads: list[str] = field(factory=list)
    loaded: list[Loaded] = field(factory=list)
    going_on: threading.Event = field(factory=threading.Event)
    """Loads wait for it."""
    closing: threading.Event = field(factory=threading.Event)
    """Closes wait for it."""

    def __attrs_post_init__(self) -> None:
        self.going_on.set()
        self.closing.set()

    @property
    def explicit(self) -> Explicit:
        return Explicit(self.control)

    def write(self, files: Mapping[str, str]) -> None:
        for path, content in files.items():
            target = self.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(content)

    def model(self, name: str, *versions: int, config: str = "", content: str = "", repository: str = "r") -> None:
        base = f"{repository}/{name}"
        files = {f"{base}/{number}/model": content for number in versions or (1,)}
        self.write({f"{base}/config.json": config or self.CONFIG, **files})

    def ensemble(self, name: str, *steps: str) -> None:
        self.model(name, config=ensemble(*steps))

    async def load(self, name: str, **options: Any) -> None:
        """Load a model, which must not fail."""
        for outcome in await self.explicit.load(name, LoadOptions(**options)):
            assert outcome.error is None, outcome.error.message

    async def refused(self, name: str, **options: Any) -> str:
        """Load a model, which must fail; why it did."""
        errors = [outcome.error for outcome in await self.explicit.load(name, LoadOptions(**options)) if outcome.error]
        assert errors
        return "; ".join(error.message for error in errors)

    async def unload(self, name: str, *versions: int, dependents: bool = False) -> None:
        for outcome in await self.explicit.unload(name, dependents=dependents, versions=frozenset(versions)):
            assert outcome.error is None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the event loop and the threads go on until something is so."""
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110  what is waited for happens on other threads, too
                await asyncio.sleep(0.001)

    def served(self) -> dict[str, list[int]]:
        return {str(model): list(versions) for model, versions in sorted(self.serving.models().items())}

    def index(self) -> list[tuple[str, int | None, str]]:
        return [(status.id.name, status.version, status.state) for status in self.manager.index()]

    def make(self, spec: VersionSpec) -> Loaded:
        assert self.going_on.wait(10)
        self.loads.append(f"{spec.id.name}/{spec.version}")
        assert spec.files.path is not None
        content = (spec.files.path / "model").read_text()
        if content.startswith("broken"):
            raise ValueError(content)
        self.loaded.append(Loaded(spec, content, self.closing))
        return self.loaded[-1]


@pytest.fixture
async def make_world(tmp_path: Path) -> AsyncIterator[Callable[..., World]]:
    worlds: list[World] = []

    def make_version(spec: VersionSpec) -> Loaded:
        return worlds[-1].make(spec)

    def make(*repositories: str, initial: Sequence[str] = (), namespacing: bool = False) -> World:
        registry = Registry(
            storages={"file": LocalStorage}, backends={"made-up": MadeUp}, platforms={}, discoverers=(("made-up", discover),)
        )
        folders = [tmp_path / name for name in repositories or ("r",)]
        for folder in folders:
            folder.mkdir(exist_ok=True)
        opened = Repositories([str(folder) for folder in folders], registry, namespacing=namespacing)
        serving: ServingMap[Any] = ServingMap()
        manager: Manager[Any] = Manager(make_version, load_threads=2, on_change=lambda change: None, serving=serving)
        control = ModelControl(opened, manager, serving, ControlSettings(initial_models=initial))
        worlds.append(World(tmp_path, control, manager, serving))
        return worlds[-1]

    yield make
    for world in worlds:
        world.going_on.set()
        world.closing.set()
        assert await world.manager.close(10)
        world.control.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()
