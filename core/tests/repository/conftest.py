"""Repositories on disk and the registry of a few made-up backends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from moorage._plugins import Registry
from moorage._repository import Repositories
from moorage._storage import LocalStorage
from moorage.backend import Backend, LoadContext, LoadedModel, ModelMatch, VersionFiles


class Onnx(Backend):
    name: ClassVar[str] = "onnxruntime"
    platforms: ClassVar[Sequence[str]] = ("onnxruntime_onnx",)
    default_model_filename: ClassVar[str] = "model.onnx"

    def load(self, context: LoadContext) -> LoadedModel:
        raise NotImplementedError


class Python(Onnx):
    name: ClassVar[str] = "python"
    platforms: ClassVar[Sequence[str]] = ()
    default_model_filename: ClassVar[str] = "model.py"


class Tensorflow(Onnx):
    name: ClassVar[str] = "tensorflow"
    platforms: ClassVar[Sequence[str]] = ("tensorflow_savedmodel", "tensorflow_graphdef")
    default_model_filename: ClassVar[str] = "model.savedmodel"


class Mine(Onnx):
    name: ClassVar[str] = "mybackend"
    platforms: ClassVar[Sequence[str]] = ()
    default_model_filename: ClassVar[str] = ""


def finder(*matches: ModelMatch) -> Callable[[VersionFiles], ModelMatch | None]:
    """A discover hook that answers with the first match whose file is there."""
    return lambda files: next((match for match in matches if match.default_model_filename in files.top_level()), None)


@pytest.fixture
def registry() -> Registry:
    classes: tuple[type[Backend], ...] = (Onnx, Python, Tensorflow, Mine)
    return Registry(
        storages={"file": LocalStorage},
        backends={cls.name: cls for cls in classes},
        platforms={platform: cls.name for cls in classes for platform in cls.platforms},
        discoverers=(
            ("onnx", finder(ModelMatch("onnxruntime", "onnxruntime_onnx", "model.onnx"))),
            ("python", finder(ModelMatch("python", "", "model.py"))),
            (
                "tensorflow",
                finder(
                    ModelMatch("tensorflow", "tensorflow_savedmodel", "model.savedmodel"),
                    ModelMatch("tensorflow", "tensorflow_graphdef", "model.graphdef"),
                ),
            ),
        ),
    )


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    """`write({"r/m/1/model.py": "…", "r/m/2/": ""})` makes files and folders below `tmp_path`."""

    def put(files: Mapping[str, str]) -> Path:
        for path, content in files.items():
            target = tmp_path / path
            folder = target if path.endswith("/") else target.parent
            folder.mkdir(parents=True, exist_ok=True)
            if not path.endswith("/"):
                target.write_text(content)
        return tmp_path

    return put


@pytest.fixture
def repositories(registry: Registry, tmp_path: Path) -> Callable[..., Repositories]:
    """`repositories("r", "s", namespacing=True)`: over folders of `tmp_path`."""
    return lambda *names, **options: Repositories([str(tmp_path / name) for name in names or ("r",)], registry, **options)
