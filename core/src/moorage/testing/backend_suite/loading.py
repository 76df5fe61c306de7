# ruff: noqa: S101 - a suite consists of assertions
"""Loading: what the files declare, what is completed, what is missing, what is given back."""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from attrs import evolve

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import MoorageError
from moorage.testing.backend_suite.base import BackendSuite
from moorage.testing.backend_suite.comparing import assert_close, assert_names
from moorage.testing.driving import Runner
from moorage.types import DataType


class LoadingTests(BackendSuite):
    """Loading and unloading."""

    def test_backend_names_itself(self) -> None:
        assert self.backend.name, "set `name`, which a configuration gives as `backend`"
        assert self.backend.name == self.backend.name.lower()
        assert not isinstance(self.backend.platforms, str), "platforms is a tuple of names, not text"

    def test_signature_agrees_with_the_configuration(self, tmp_path: Path) -> None:
        case = self.add_sub()
        with self.loaded(case.context(tmp_path)) as model:
            signature = model.signature()
        if signature is None:
            pytest.skip("files of this backend declare nothing")
        for found, wanted in ((signature.inputs, case.config.input), (signature.outputs, case.config.output)):
            assert {spec.name for spec in found} == {one.name for one in wanted}
            assert {spec.datatype for spec in found} <= {None, DataType.FP32}, "None if the file does not say"
            assert {spec.shape for spec in found} <= {None, (-1, 3), (-1, -1)}, "the batch dimension is part of it, as -1"

    def test_an_empty_configuration_is_completed_to_the_model_s_own(self, tmp_path: Path) -> None:
        if not self.completes:
            pytest.skip("the files do not tell enough")
        cases = [self.add_sub(), *self.identities().values()]
        places = [case.put(tmp_path, name=f"model_{index}") for index, case in enumerate(cases)]
        with self.served(tmp_path) as server:
            for case, place in zip(cases, places, strict=True):
                server.load(place.parent.name)
                found = server.config(place.parent.name)
                assert _declared(found) == _declared(case.config), (
                    f"{case.source.name}: tell in LoadedModel.signature() what the file declares, the batch dimension included"
                )
                assert found.backend == self.backend.name, "discover_model must find the backend by the file's name"

    def test_a_configuration_without_tensors_is_refused_if_the_file_cannot_tell(self, tmp_path: Path) -> None:
        if self.completes:
            pytest.skip("the files tell")
        case = self.add_sub()
        case.put(tmp_path, evolve(case.configured(self.backend.name), input=(), output=()))
        with (
            self.served(tmp_path) as server,
            pytest.raises(MoorageError, match=rf"'{case.name}'.*(input|output|data_type|dims)"),
        ):
            server.load(case.name)

    def test_a_configuration_that_the_file_contradicts_is_refused(self, tmp_path: Path) -> None:
        case = self.add_sub()
        wrong = evolve(case.config.input[0], name="NO_SUCH_INPUT")
        config = evolve(case.configured(self.backend.name), input=(wrong, *case.config.input[1:]))
        case.put(tmp_path, config)
        with self.served(tmp_path) as server:
            try:
                server.load(case.name)
                sample = evolve(case, config=config).sample(np.random.default_rng(0))
                server.infer(case.name, sample)
            except MoorageError as error:
                assert_names(error, case.name)
            else:
                pytest.fail("an input that the model does not have must be refused, at load if the file names its inputs")

    def test_absent_file_is_an_error_that_names_the_model(self, tmp_path: Path) -> None:
        context = self.add_sub().context(tmp_path, files={})
        with pytest.raises(MoorageError, match=context.model_name), self.loaded(context):
            pass

    def test_absent_file_is_found_out_by_the_server(self, tmp_path: Path) -> None:
        case = self.add_sub()
        case.put(tmp_path, case.configured(self.backend.name), files={})
        with self.served(tmp_path) as server, pytest.raises(MoorageError, match=case.name):
            server.load(case.name)

    @pytest.mark.parametrize("form", ["empty", "truncated", "noise"])
    def test_broken_file_is_an_error_that_names_the_model(self, form: str, tmp_path: Path) -> None:
        case = self.add_sub()
        content = self.corruptions(case.files()[case.main_file()])[form]
        context = case.context(tmp_path, content=content)
        with pytest.raises(MoorageError, match=context.model_name), self.loaded(context) as model:
            model.instance(context.placements[0])

    def test_loads_again_after_a_failure(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self.add_sub()
        broken = case.context(tmp_path / "broken", content=self.corruptions(case.files()[case.main_file()])["noise"])
        backend = self.backend()
        with pytest.raises(MoorageError):
            backend.load(broken).instance(broken.placements[0])
        context = case.context(tmp_path / "good")
        model = backend.load(context)
        instance = model.instance(context.placements[0])
        assert set(Runner(instance, case.config).one(case.sample(rng))) == {"TOTAL", "GAP"}
        instance.close()
        model.close()
        backend.close()

    def test_several_loads_at_once(self, tmp_path: Path) -> None:
        case, backend = self.add_sub(), self.backend()

        def load_and_run(number: int) -> None:
            context = case.context(tmp_path / str(number))
            model = backend.load(context)
            instance = model.instance(context.placements[0])
            inputs = case.sample(np.random.default_rng(number))
            left, right = inputs["LEFT"], inputs["RIGHT"]
            assert_close(Runner(instance, case.config).one(inputs), {"TOTAL": left + right, "GAP": left - right})
            instance.close()
            model.close()

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(load_and_run, range(8)))
        backend.close()

    def test_loads_and_unloads_give_everything_back(self, tmp_path: Path, rng: np.random.Generator) -> None:
        case, readings = self.add_sub(), []
        for index in range(40):
            with self.runner(case, tmp_path / str(index)) as runner:
                runner.one(case.sample(rng))
            if index in {9, 39}:
                gc.collect()
                readings.append(_Reading.now())
        before, after = readings
        grown = (after.memory - before.memory) / 2**20
        assert grown < self.memory_growth_mib, f"{grown:.0f} MiB are kept after close(); drop what the model and instances hold"
        assert after.files <= before.files, "files stay open after close()"
        kept = after.threads - before.threads
        assert kept <= self.threads_growth, f"{kept} threads are left after close(); end them, or share one pool"


class _Reading(NamedTuple):
    """What this process has of the system: bytes of memory, open files, threads. Zeros where the system does not tell."""

    memory: int
    files: int
    threads: int

    @classmethod
    def now(cls) -> _Reading:
        process = Path("/proc/self")
        if not (process / "statm").exists():
            return cls(0, 0, threading.active_count())
        pages = int((process / "statm").read_text().split()[1])
        return cls(pages * os.sysconf("SC_PAGE_SIZE"), _entries(process / "fd"), _entries(process / "task"))


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())


def _declared(config: ModelConfig) -> tuple[bool, set[tuple[str, ...]], set[tuple[str, ...]]]:
    return config.batches, {_described(one) for one in config.input}, {_described(one) for one in config.output}


def _described(tensor: ModelInput | ModelOutput) -> tuple[str, ...]:
    return tensor.name, tensor.data_type.name, str(list(tensor.dims))
