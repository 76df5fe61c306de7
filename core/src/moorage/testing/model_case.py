"""A model for the conformance suite: its files, its configuration, and what it is to be placed on."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import field, frozen

from moorage.backend import LoadContext, Placement
from moorage.config.schema import InstanceKind, ModelConfig


@frozen
class ModelCase:
    """A model file of a backend.

    `source` is the file (or folder) that is put into a version folder under `filename`. `config` is complete: inputs and
    outputs with data types and dims, `max_batch_size` above 0 if the model batches.
    """

    source: Path
    config: ModelConfig
    filename: str
    backend_config: Mapping[str, str] = field(factory=dict)

    def context(self, repository: Path, *, instances: int = 1, content: bytes | None = None) -> LoadContext:
        """Lay the model out below the empty folder `repository` and say how to load it.

        `content` takes the place of what the file holds.
        """
        name = self.config.name or "conformance"
        version_path = repository / name / "1"
        version_path.mkdir(parents=True)
        self._copy(version_path / self.filename, content)
        return LoadContext(
            model_name=name,
            version=1,
            config=self.config,
            version_path=version_path,
            model_path=version_path.parent,
            model_filename=self.filename,
            placements=tuple(Placement(f"{name}_0_{index}", InstanceKind.KIND_CPU) for index in range(instances)),
            backend_config=self.backend_config,
        )

    def sample(self, rng: np.random.Generator, rows: int = 1) -> dict[str, np.ndarray]:
        """Random inputs of the shapes that the configuration declares; an open size is 3."""
        return {one.name: _sample(rng, one.data_type.numpy, self.shape(one.dims, rows)) for one in self.config.input}

    def shape(self, dims: tuple[int, ...], rows: int) -> tuple[int, ...]:
        """The shape of a tensor with these dims, the batch dimension in front if the model batches."""
        sizes = tuple(3 if size < 0 else size for size in dims)
        return (rows, *sizes) if self.config.batches else sizes

    def _copy(self, target: Path, content: bytes | None) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        if content is not None:
            target.write_bytes(content)
        elif self.source.is_dir():
            shutil.copytree(self.source, target)
        else:
            shutil.copyfile(self.source, target)


def _sample(rng: np.random.Generator, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    numbers = rng.integers(0, 100, shape)
    if dtype.kind == "O":
        array = np.empty(shape, dtype=object)
        array.ravel()[:] = [f"no {number} \u20ac".encode() for number in numbers.ravel()]
        return array
    return (numbers % 2 if dtype.kind == "b" else numbers).astype(dtype)
