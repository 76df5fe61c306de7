"""What a backend's author tells the suite: the class, its models, and what it promises."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.server import Server
from moorage.testing.corruption import Limits, Mutant
from moorage.testing.driving import Runner
from moorage.testing.model_case import Files, ModelCase
from moorage.types import DataType

DATATYPES = [datatype for datatype in DataType if datatype is not DataType.INVALID]


class BackendSuite(ABC):
    """The hooks of the suite, and what its tests have in common."""

    backend: ClassVar[type[Backend]]
    completes: ClassVar[bool] = True
    """Whether a model's file tells all of its inputs and outputs, so that a configuration may leave them out."""
    strings_are_text: ClassVar[bool] = False
    """Whether strings must be UTF-8. Others are to be refused with an error that names the input, never changed."""
    memory_growth_mib: ClassVar[float] = 16
    """How much the process may grow over 30 loads and unloads after the first 10, and over 200 MiB of requests."""
    threads_growth: ClassVar[int] = 2
    """How many threads those loads and unloads may leave behind, all together."""
    mutant_count: ClassVar[int] = 300
    """Broken files that are tried of each format."""
    mutant_limits: ClassVar[Limits] = Limits()
    """What a broken file may take."""

    @abstractmethod
    def add_sub(self) -> ModelCase:
        """A model that batches (max_batch_size of at least 8): FP32 `LEFT` and `RIGHT` of dims [3] to `TOTAL` and `GAP`."""

    def identities(self) -> Mapping[DataType, ModelCase]:
        """For each data type that the backend can carry, a model that copies its only input to its only output.

        A backend must refuse models whose configuration has one of the other types.
        """
        return {}

    def with_weights(self) -> ModelCase:
        """A model whose file holds more numbers than a page of memory, which it needs to answer; `add_sub` if there is none."""
        return self.add_sub()

    def formats(self) -> Mapping[str, ModelCase]:
        """A small model for each kind of file or folder that the backend reads, by a name for it: they will be broken."""
        return {self.add_sub().filename: self.add_sub()}

    def mutants(self, kind: str, files: Files) -> Iterable[Mutant]:
        """Files of a format (a key of `formats`) that are broken with knowledge of it: fields, attributes, archives."""
        return ()

    def corruptions(self, content: bytes) -> Mapping[str, bytes]:
        """Broken forms of the main file of `add_sub`, none of which may load."""
        noise = np.random.default_rng(5).bytes(max(len(content), 64))
        return {"empty": b"", "truncated": content[: len(content) * 2 // 3], "noise": noise}

    @contextmanager
    def loaded(self, context: LoadContext) -> Iterator[LoadedModel]:
        """A loaded model, closed at the end."""
        backend = self.backend()
        try:
            model = backend.load(context)
            try:
                yield model
            finally:
                model.close()
        finally:
            backend.close()

    @contextmanager
    def runner(self, case: ModelCase, folder: Path) -> Iterator[Runner]:
        """One instance of a loaded model."""
        context = case.context(folder)
        with self.loaded(context) as model:
            instance = model.instance(context.placements[0])
            try:
                yield Runner(instance, case.config)
            finally:
                instance.close()

    @contextmanager
    def served(self, folder: Path, **options: Any) -> Iterator[Server]:
        """A real server of the models in a folder, which are loaded when they are asked for."""
        folder.mkdir(exist_ok=True)
        with Server(model_repository=folder, model_control_mode="explicit", **options) as server:
            yield server

    @pytest.fixture
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0)

    @pytest.fixture
    def adder(self, tmp_path: Path) -> Iterator[Runner]:
        """One instance of `add_sub`."""
        with self.runner(self.add_sub(), tmp_path) as runner:
            yield runner

    @pytest.fixture
    def serving(self, tmp_path: Path) -> Iterator[Server]:
        """A server in which `add_sub` serves with two instances."""
        case = self.add_sub()
        case.put(tmp_path, case.configured(self.backend.name, instances=2))
        with self.served(tmp_path, backend_config=self.settings(case)) as server:
            server.load(case.name)
            yield server

    def settings(self, case: ModelCase) -> list[str]:
        """The case's `--backend-config`."""
        return [f"{self.backend.name},{name}={value}" for name, value in case.backend_config.items()]
