"""A model for the conformance suite: its files, its configuration, and what it is to be placed on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import numpy as np
from attrs import evolve, field, frozen

from moorage.backend import LoadContext, Placement
from moorage.config import to_text
from moorage.config.schema import InstanceGroup, InstanceKind, ModelConfig
from moorage.types import DataType

Files = Mapping[str, bytes]
"""The files of a version: paths below the version folder, with `/` between their parts, to contents."""


@frozen
class ModelCase:
    """A model of a backend, in a file or a folder.

    `source` is the file (or folder) that is put into a version folder under `filename`. `config` is complete: inputs and
    outputs with data types and dims, `max_batch_size` above 0 if the model batches, and `platform` where the backend needs one
    to tell its kinds of files apart.
    """

    source: Path
    config: ModelConfig
    filename: str
    backend_config: Mapping[str, str] = field(factory=dict)
    """Settings as of `--backend-config=NAME,...`."""
    beside: Mapping[str, Path] = field(factory=dict)
    """Further files of the version folder: names to what is copied there, such as the `model.bin` next to a `model.xml`."""
    main: str = ""
    """Of a folder: the file in it without which nothing loads, such as "saved_model.pb"; the largest one if empty."""

    @property
    def name(self) -> str:
        """The model's name in the tests."""
        return self.config.name or "conformance"

    def files(self) -> Files:
        """The files of the version folder."""
        found = dict(_read(self.source, self.filename))
        for name, source in self.beside.items():
            found.update(_read(source, name))
        return found

    def main_file(self) -> str:
        """The path of the file without which nothing loads."""
        if not self.source.is_dir():
            return self.filename
        if self.main:
            return f"{self.filename}/{self.main}"
        own = {path: content for path, content in self.files().items() if path.startswith(f"{self.filename}/")}
        return max(own, key=lambda path: len(own[path]))

    def configured(self, backend: str, *, name: str = "", instances: int = 1) -> ModelConfig:
        """The configuration for a server: it names the backend, and how many instances there are on the CPU."""
        named = backend if not (self.config.backend or self.config.platform) else self.config.backend
        group = self.config.instance_group or (InstanceGroup(kind=InstanceKind.KIND_CPU, count=instances),)
        return evolve(self.config, name=name or self.name, backend=named, instance_group=group)

    def put(self, repository: Path, config: ModelConfig | None = None, *, name: str = "", files: Files | None = None) -> Path:
        """Lay the model out in a repository, with a `config.pbtxt` if there is one; the version folder.

        `files` take the place of the model's own.
        """
        folder = repository / (name or self.name)
        version_path = folder / "1"
        for path, content in (self.files() if files is None else files).items():
            target = version_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        version_path.mkdir(parents=True, exist_ok=True)
        if config is not None:
            (folder / "config.pbtxt").write_text(to_text(evolve(config, name=folder.name)), encoding="utf-8")
        return version_path

    def context(
        self, repository: Path, *, instances: int = 1, content: bytes | None = None, files: Files | None = None
    ) -> LoadContext:
        """Lay the model out below the empty folder `repository` and say how to load it.

        `files` take the place of the model's own, `content` that of its main file.
        """
        if content is not None:
            files = {**self.files(), self.main_file(): content}
        version_path = self.put(repository, files=files)
        return LoadContext(
            model_name=self.name,
            version=1,
            config=self.config,
            version_path=version_path,
            model_path=version_path.parent,
            model_filename=self.filename,
            placements=tuple(Placement(f"{self.name}_0_{index}", InstanceKind.KIND_CPU) for index in range(instances)),
            backend_config=self.backend_config,
        )

    def sample(self, rng: np.random.Generator, rows: int = 1) -> dict[str, np.ndarray]:
        """Random inputs of the shapes that the configuration declares; an open size is 3."""
        return {one.name: _sample(rng, one.data_type.numpy, self.shape(one.dims, rows)) for one in self.config.input}

    def shape(self, dims: tuple[int, ...], rows: int) -> tuple[int, ...]:
        """The shape of a tensor with these dims, the batch dimension in front if the model batches."""
        sizes = tuple(3 if size < 0 else size for size in dims)
        return (rows, *sizes) if self.config.batches else sizes

    def with_type(self, datatype: DataType) -> ModelCase:
        """The same files, with a configuration that says this of all inputs and outputs."""
        inputs = tuple(evolve(one, data_type=datatype) for one in self.config.input)
        outputs = tuple(evolve(one, data_type=datatype) for one in self.config.output)
        return evolve(self, config=evolve(self.config, input=inputs, output=outputs))


def _read(source: Path, name: str) -> Files:
    if not source.is_dir():
        return {name: source.read_bytes()}
    inside = (path for path in sorted(source.rglob("*")) if path.is_file())
    return {str(PurePosixPath(name, path.relative_to(source).as_posix())): path.read_bytes() for path in inside}


def _sample(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    numbers = rng.integers(0, 100, shape)
    if dtype.kind == "O":
        array = np.empty(shape, dtype=object)
        array.ravel()[:] = [f"no {number} \u20ac".encode() for number in numbers.ravel()]
        return array
    return (numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)
