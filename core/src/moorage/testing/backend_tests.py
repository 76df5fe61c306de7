# ruff: noqa: S101 - a suite consists of assertions
"""The conformance suite for backends: subclass it in the plugin's tests."""

from __future__ import annotations

import gc
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from moorage.backend import Backend, LoadContext, LoadedModel
from moorage.errors import MoorageError
from moorage.testing.driving import Arrays, Runner
from moorage.testing.model_case import ModelCase
from moorage.types import DataType

DATATYPES = [datatype for datatype in DataType if datatype is not DataType.INVALID]


def _same(found: Arrays, wanted: Arrays) -> None:
    assert set(found) == set(wanted)
    for name, array in wanted.items():
        assert found[name].shape == array.shape, name
        assert found[name].dtype == array.dtype, name
        if array.dtype.kind in "fV":
            np.testing.assert_allclose(found[name].astype(np.float64), array.astype(np.float64), rtol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)


class BackendTests(ABC):
    """Any backend must pass these. A subclass names its class and provides its models:

        class TestMyBackend(BackendTests):
            backend = MyBackend

            def add_sub(self) -> ModelCase:
                return ModelCase(HERE / "add_sub.bin", ADD_SUB_CONFIG, "model.bin")

    Methods that return None (or an empty mapping) leave out the tests that need them.
    """

    backend: ClassVar[type[Backend]]
    memory_growth_mib: ClassVar[float] = 16
    """How much the process may grow over 30 loads and unloads after the first 10."""

    @abstractmethod
    def add_sub(self) -> ModelCase:
        """A model that batches (max_batch_size of at least 8): FP32 `LEFT` and `RIGHT` of dims [3] to `TOTAL` and `GAP`."""

    def identities(self) -> Mapping[DataType, ModelCase]:
        """For each data type that the backend can carry, a model that copies its only input to its only output."""
        return {}

    def corruptions(self, content: bytes) -> Mapping[str, bytes]:
        """Broken forms of the file of `add_sub`, none of which may load."""
        noise = np.random.default_rng(5).bytes(max(len(content), 64))
        return {"empty": b"", "truncated": content[: len(content) * 2 // 3], "noise": noise}

    @contextmanager
    def loaded(self, context: LoadContext) -> Iterator[LoadedModel]:
        """A loaded model, closed at the end."""
        backend = self.backend()
        model = backend.load(context)
        try:
            yield model
        finally:
            model.close()
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

    @pytest.fixture
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(0)

    @pytest.fixture
    def adder(self, tmp_path: Path) -> Iterator[Runner]:
        with self.runner(self.add_sub(), tmp_path) as runner:
            yield runner

    def test_backend_names_itself(self) -> None:
        assert self.backend.name
        assert self.backend.name == self.backend.name.lower()
        assert not isinstance(self.backend.platforms, str)

    def test_signature_agrees_with_the_configuration(self, tmp_path: Path) -> None:
        case = self.add_sub()
        with self.loaded(case.context(tmp_path)) as model:
            signature = model.signature()
        if signature is None:
            pytest.skip("files of this backend declare nothing")
        for found, wanted in ((signature.inputs, case.config.input), (signature.outputs, case.config.output)):
            assert {spec.name for spec in found} == {one.name for one in wanted}
            assert {spec.datatype for spec in found} <= {None, DataType.FP32}
            assert {spec.shape for spec in found} <= {None, (-1, 3), (-1, -1)}

    def test_computes(self, adder: Runner) -> None:
        left, right = np.array([[1, 2, 3]], np.float32), np.array([[10, 20, 0.5]], np.float32)
        _same(adder.one({"LEFT": left, "RIGHT": right}), {"TOTAL": left + right, "GAP": left - right})

    def test_gives_only_the_wanted_outputs(self, adder: Runner, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        _same(adder.one(inputs, ["GAP"]), {"GAP": inputs["LEFT"] - inputs["RIGHT"]})

    def test_batch_gives_what_single_requests_give(self, adder: Runner, rng: np.random.Generator) -> None:
        requests = [self.add_sub().sample(rng, rows) for rows in (1, 3, 2)]
        for together, alone in zip(adder.together(requests), map(adder.one, requests), strict=True):
            _same(together, alone)

    def test_takes_inputs_that_are_read_only_or_strided(self, adder: Runner) -> None:
        left = np.frombuffer(np.arange(6, dtype=np.float32).tobytes(), dtype=np.float32).reshape(2, 3)
        right = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
        _same(adder.one({"LEFT": left, "RIGHT": right}), {"TOTAL": left + right, "GAP": left - right})

    def test_keeps_results_of_earlier_runs(self, adder: Runner, rng: np.random.Generator) -> None:
        inputs = self.add_sub().sample(rng)
        first = adder.one(inputs)
        kept = {name: array.copy() for name, array in first.items()}
        for _ in range(5):
            adder.one(self.add_sub().sample(rng))
        _same(first, kept)

    @pytest.mark.parametrize("datatype", DATATYPES, ids=lambda datatype: datatype.name)
    def test_carries_data_type(self, datatype: DataType, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.identities().get(datatype)
        if case is None:
            pytest.skip(f"no model with {datatype.name}")
        inputs = case.sample(rng, rows=2)
        with self.runner(case, tmp_path) as runner:
            _same(runner.one(inputs), {case.config.output[0].name: next(iter(inputs.values()))})

    @pytest.mark.parametrize(
        "inputs",
        [
            pytest.param({"LEFT": np.zeros((1, 3), np.float32)}, id="an input left out"),
            pytest.param({"LEFT": np.zeros((1, 3), np.float32), "RIGHT": np.zeros((1, 4), np.float32)}, id="sizes that differ"),
        ],
    )
    def test_refuses_inputs_and_goes_on(self, adder: Runner, inputs: dict[str, Any], rng: np.random.Generator) -> None:
        good = self.add_sub().sample(rng)
        wanted = adder.one(good)
        with pytest.raises(MoorageError):
            adder.one(inputs)
        _same(adder.one(good), wanted)

    def test_instances_run_at_the_same_time(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        context = case.context(tmp_path, instances=2)
        samples = [case.sample(rng, rows=4) for _ in range(50)]

        def work(runner: Runner) -> None:
            for inputs in samples:
                left, right = inputs["LEFT"], inputs["RIGHT"]
                _same(runner.one(inputs), {"TOTAL": left + right, "GAP": left - right})

        with self.loaded(context) as model, ThreadPoolExecutor(2) as pool:
            runners = [Runner(model.instance(placement), case.config) for placement in context.placements]
            list(pool.map(work, runners))
            for runner in runners:
                runner.instance.close()

    def test_an_instance_outlives_another(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        context = case.context(tmp_path, instances=2)
        with self.loaded(context) as model:
            first, second = (Runner(model.instance(placement), case.config) for placement in context.placements)
            first.instance.close()
            assert set(second.one(case.sample(rng))) == {"TOTAL", "GAP"}
            second.instance.close()

    @pytest.mark.parametrize("form", ["empty", "truncated", "noise"])
    def test_broken_file_is_an_error_that_names_the_model(self, form: str, tmp_path: Path) -> None:
        case = self.add_sub()
        if case.source.is_dir():
            pytest.skip("the model is a folder")
        content = self.corruptions(case.source.read_bytes())[form]
        context = case.context(tmp_path, content=content)
        with pytest.raises(MoorageError, match=context.model_name), self.loaded(context) as model:
            model.instance(context.placements[0])

    def test_absent_file_is_an_error_that_names_the_model(self, tmp_path: Path) -> None:
        context = self.add_sub().context(tmp_path, content=b"")
        context.model_file.unlink()
        with pytest.raises(MoorageError, match=context.model_name), self.loaded(context):
            pass

    def test_memory_stays_flat_over_loads_and_unloads(self, tmp_path: Path, rng: np.random.Generator) -> None:
        statm = Path("/proc/self/statm")
        if not statm.exists():
            pytest.skip("this system does not tell how much memory a process has")
        case, grown = self.add_sub(), []
        for index in range(40):
            with self.runner(case, tmp_path / str(index)) as runner:
                runner.one(case.sample(rng))
            if index in {9, 39}:
                gc.collect()
                grown.append(int(statm.read_text().split()[1]) * 4096)
        assert (grown[1] - grown[0]) / 2**20 < self.memory_growth_mib
