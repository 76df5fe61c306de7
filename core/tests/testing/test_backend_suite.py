"""The suite finds the faults that backends have."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moorage.backend import Backend, BatchInstance, LoadContext, LoadedModel, Placement, Signature, TensorSpec
from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import ModelError, RequestError
from moorage.testing.backend_suite.datatypes import DataTypeTests
from moorage.testing.backend_suite.loading import LoadingTests
from moorage.testing.backend_suite.running import RunningTests
from moorage.testing.driving import Runner
from moorage.testing.model_case import ModelCase
from moorage.types import DataType

MAGIC = b"add and sub " + bytes(100)
RNG = np.random.default_rng(0)


class Instance(BatchInstance):
    """Computes as it should, but for what the backend is told to do wrong."""

    def __init__(self, wrong: str, model: str) -> None:
        self._wrong = wrong
        self._model = model
        self._kept = np.zeros((8, 3), np.float32)

    def run(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        if self._wrong == "foreign errors":
            return self._computed(inputs, outputs)
        try:
            return self._computed(inputs, outputs)
        except (KeyError, ValueError) as error:
            raise RequestError(f"model '{self._model}': {error!r}") from error

    def _computed(self, inputs: Mapping[str, np.ndarray], outputs: Sequence[str]) -> Mapping[str, np.ndarray]:
        left, right = inputs["LEFT"], inputs["RIGHT"]
        results = {"TOTAL": left + right, "GAP": left - right}
        if self._wrong == "one buffer":
            self._kept[: len(left)] = results["TOTAL"]
            results["TOTAL"] = self._kept[: len(left)]
        if self._wrong == "changes inputs":
            left += 1
        if self._wrong == "doubles":
            results["GAP"] = results["GAP"].astype(np.float64)
        if self._wrong == "first row":
            results = {name: np.broadcast_to(array[:1], array.shape) for name, array in results.items()}
        return results if self._wrong == "all outputs" else {name: results[name] for name in outputs}


class Model(LoadedModel):
    def __init__(self, wrong: str, model: str) -> None:
        self._wrong, self._model = wrong, model

    def signature(self) -> Signature:
        shape = (3,) if self._wrong == "no batch dimension" else (-1, 3)
        return Signature(
            tuple(TensorSpec(name, DataType.FP32, shape) for name in ("LEFT", "RIGHT")),
            tuple(TensorSpec(name, DataType.FP32, shape) for name in ("TOTAL", "GAP")),
        )

    def instance(self, placement: Placement) -> BatchInstance:
        return Instance(self._wrong, self._model)


class Plain(Backend):
    name = "plain"
    default_model_filename = "model.plain"
    wrong = ""
    kept: list[Any] = []  # noqa: RUF012 - what a careless backend has

    def load(self, context: LoadContext) -> LoadedModel:
        if not context.model_file.exists() or context.model_file.read_bytes() != MAGIC:
            raise ModelError("broken" if self.wrong == "nameless errors" else f"model '{context.model_name}': it is broken")
        if self.wrong == "keeps memory":
            self.kept.append(np.ones(2**20))
        if self.wrong == "keeps files":
            self.kept.append(context.model_file.open("rb"))
        if self.wrong == "keeps threads":
            gate = threading.Event()
            self.kept.append(gate)
            threading.Thread(target=gate.wait, daemon=True).start()
        return Model(self.wrong, context.model_name)


class Suite(LoadingTests, RunningTests, DataTypeTests):
    """Not collected by itself: each test here calls what it needs."""

    __test__ = False
    backend = Plain

    def __init__(self, folder: Path) -> None:
        self.source = folder / "plain"
        self.source.write_bytes(MAGIC)

    def add_sub(self) -> ModelCase:
        inputs = tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT"))
        outputs = tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP"))
        return ModelCase(self.source, ModelConfig(name="sums", max_batch_size=8, input=inputs, output=outputs), "model.plain")


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setattr(Plain, "wrong", "")
    monkeypatch.setattr(Plain, "kept", [])
    return Suite(tmp_path)


def run(suite: Suite, test: str, folder: Path) -> None:
    """Run one of the suite's tests, with what its fixtures would give it."""
    method = getattr(suite, test)
    wanted = set(method.__code__.co_varnames[: method.__code__.co_argcount]) - {"self"}
    arguments: dict[str, Any] = {"tmp_path": folder / "tests", "rng": np.random.default_rng(0)}
    (folder / "tests").mkdir()
    if "inputs" in wanted:
        arguments["inputs"] = {"LEFT": np.zeros((1, 3), np.float32), "RIGHT": np.zeros((1, 4), np.float32)}
    if "form" in wanted:
        arguments["form"] = "noise"
    if "adder" in wanted:
        with suite.runner(suite.add_sub(), folder / "adder") as runner:
            method(**{name: value for name, value in {**arguments, "adder": runner}.items() if name in wanted})
        return
    method(**{name: value for name, value in arguments.items() if name in wanted})


FAULTS = [
    ("one buffer", "test_keeps_results_of_earlier_runs", AssertionError),
    ("changes inputs", "test_leaves_inputs_as_they_are", AssertionError),
    ("doubles", "test_computes", AssertionError),
    ("first row", "test_batch_gives_what_single_requests_give", AssertionError),
    ("all outputs", "test_gives_only_the_wanted_outputs", AssertionError),
    ("no batch dimension", "test_signature_agrees_with_the_configuration", AssertionError),
    ("foreign errors", "test_refuses_inputs_and_goes_on", ValueError),
    ("nameless errors", "test_broken_file_is_an_error_that_names_the_model", AssertionError),
    ("nameless errors", "test_absent_file_is_an_error_that_names_the_model", AssertionError),
    ("keeps memory", "test_loads_and_unloads_give_everything_back", AssertionError),
    ("keeps files", "test_loads_and_unloads_give_everything_back", AssertionError),
    ("keeps threads", "test_loads_and_unloads_give_everything_back", AssertionError),
]


@pytest.mark.parametrize("wrong, test, kind", FAULTS, ids=str)
def test_a_fault_is_found(wrong: str, test: str, kind: type[Exception], suite: Suite, tmp_path: Path) -> None:
    Plain.wrong = wrong
    with pytest.raises(kind):
        run(suite, test, tmp_path)
    for kept in Plain.kept:
        if hasattr(kept, "close"):
            kept.close()
        if isinstance(kept, threading.Event):
            kept.set()


@pytest.mark.parametrize("test", sorted({test for _, test, _ in FAULTS}))
def test_a_backend_without_faults_passes(test: str, suite: Suite, tmp_path: Path) -> None:
    run(suite, test, tmp_path)


def test_a_case_lays_out_files_beside_its_model(tmp_path: Path) -> None:
    (tmp_path / "net.xml").write_bytes(b"<net/>")
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "0.bin").write_bytes(b"0123456789")
    case = ModelCase(tmp_path / "net.xml", ModelConfig(name="net"), "model.xml", beside={"model.bin": folder / "0.bin"})
    assert case.files() == {"model.xml": b"<net/>", "model.bin": b"0123456789"}
    assert case.main_file() == "model.xml"
    context = case.context(tmp_path / "repository", content=b"broken")
    assert context.model_file.read_bytes() == b"broken"
    assert (context.version_path / "model.bin").read_bytes() == b"0123456789"


def test_the_main_file_of_a_folder_is_named_or_the_largest(tmp_path: Path) -> None:
    folder = tmp_path / "saved"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "data").write_bytes(bytes(100))
    case = ModelCase(folder, ModelConfig(name="saved"), "model.savedmodel")
    assert case.main_file() == "model.savedmodel/variables/data"
    named = ModelCase(folder, ModelConfig(name="saved"), "model.savedmodel", main="saved_model.pb")
    assert named.main_file() == "model.savedmodel/saved_model.pb"
    assert set(case.files()) == {"model.savedmodel/saved_model.pb", "model.savedmodel/variables/data"}


def test_a_runner_drives_instances_of_both_kinds(suite: Suite, tmp_path: Path) -> None:
    with suite.runner(suite.add_sub(), tmp_path / "adder") as runner:
        assert isinstance(runner, Runner)
        assert set(runner.one(suite.add_sub().sample(RNG))) == {"TOTAL", "GAP"}


def test_all_names_of_the_room_can_be_had() -> None:
    import moorage.testing as room

    assert all(getattr(room, name).__module__.startswith("moorage") or name == "Files" for name in room.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        room.Nothing  # noqa: B018


def test_processes_for_broken_models_do_without_pytest() -> None:
    code = "import sys, moorage.testing.corruption.child; assert 'pytest' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
