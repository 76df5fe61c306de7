"""The suite that every backend must pass, for TorchScript files and for programs of torch.export."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.errors import MoorageError
from moorage.testing import BackendTests, Files, ModelCase, Mutant, Runner
from moorage.testing.corruption import HARMS
from moorage.types import DataType
from moorage_torchscript.backend import TorchBackend

MODELS = Path(__file__).parent / "models"
TYPES = [datatype for datatype in DataType if datatype is not DataType.INVALID]
ADD_SUB = ModelConfig(
    name="add_sub",
    max_batch_size=8,
    input=tuple(ModelInput(name, DataType.FP32, dims=(3,)) for name in ("LEFT", "RIGHT")),
    output=tuple(ModelOutput(name, DataType.FP32, (3,)) for name in ("TOTAL", "GAP")),
)


def identity(datatype: DataType, output: str = "Y") -> ModelConfig:
    return ModelConfig(
        name="identity",
        max_batch_size=8,
        input=(ModelInput("X", datatype, dims=(-1,)),),
        output=(ModelOutput(output, datatype, (-1,)),),
    )


def rows(output: str) -> ModelConfig:
    return ModelConfig(
        name="rows",
        input=(ModelInput("ROW", DataType.INT64, dims=(-1,)),),
        output=(ModelOutput(output, DataType.FP32, (-1, 8)),),
    )


def archive_mutants(files: Files, seed: int = 0) -> Iterator[Mutant]:
    """Archives with right check sums and one wrong part: left out, cut off, changed, in another's place."""
    ((path, content),) = files.items()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    rng = np.random.default_rng(seed)
    for name in parts:
        yield Mutant(f"without {name}", {path: _packed({other: data for other, data in parts.items() if other != name})})
        yield Mutant(f"{name} empty", {path: _packed({**parts, name: b""})})
    for number in range(1000):
        name, other = rng.choice(list(parts), 2)
        data = parts[name]
        changed = bytearray(data or b"?")
        for at in rng.integers(0, len(changed), int(rng.integers(1, 6))):
            changed[at] = int(rng.integers(256))
        forms = (bytes(changed), data[: int(rng.integers(len(data) + 1))], parts[other], data + data)
        form = int(rng.integers(len(forms)))
        yield Mutant(f"{number}: {name} in form {form}", {path: _packed({**parts, name: forms[form]})})


def _packed(parts: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return buffer.getvalue()


class TestTorchScript(BackendTests):
    backend = TorchBackend
    completes = False
    strings_are_text = True
    mutant_count = 300

    def add_sub(self) -> ModelCase:
        return ModelCase(MODELS / "add_sub.pt", ADD_SUB, "model.pt")

    def identities(self) -> Mapping[DataType, ModelCase]:
        files = {datatype: "identity_words.pt" if datatype is DataType.BYTES else "identity.pt" for datatype in TYPES}
        return {datatype: ModelCase(MODELS / file, identity(datatype), "model.pt") for datatype, file in files.items()}

    def with_weights(self) -> ModelCase:
        return ModelCase(MODELS / "rows.pt", rows("VALUES"), "model.pt")

    def mutants(self, kind: str, files: Files) -> Iterable[Mutant]:
        return archive_mutants(files)

    @pytest.mark.heavy
    def test_broken_files_are_answered_or_refused(self) -> None:
        super().test_broken_files_are_answered_or_refused()

    def test_a_configuration_that_the_file_contradicts_is_refused(self, tmp_path: Path) -> None:
        """Names that are no arguments mean an order, as in Triton; what the order cannot mean is refused."""
        case = self.add_sub()
        (left, right), (total, _) = case.config.input, case.config.output
        wrong: Mapping[str, Mapping[str, Any]] = {
            "an input too many": {"input": (left, right, evolve(left, name="INPUT__2"))},
            "an input too few": {"input": (right,)},
            "another order": {"input": (right, evolve(left, name="OTHER"))},
            "an output too many": {"output": (total, evolve(total, name="B"), evolve(total, name="C"))},
        }
        for number, changes in enumerate(wrong.values()):
            case.put(tmp_path, evolve(case.configured(self.backend.name), **changes), name=f"wrong_{number}")
        with self.served(tmp_path) as server:
            for number in range(len(wrong)):
                with pytest.raises(MoorageError, match=f"wrong_{number}"):
                    server.load(f"wrong_{number}")


class TestExportedPrograms(BackendTests):
    backend = TorchBackend
    mutant_count = 150

    def add_sub(self) -> ModelCase:
        return ModelCase(MODELS / "add_sub.pt2", ADD_SUB, "model.pt2")

    def identities(self) -> Mapping[DataType, ModelCase]:
        return {datatype: self.identity(datatype) for datatype in TYPES if datatype is not DataType.BYTES}

    def with_weights(self) -> ModelCase:
        return ModelCase(MODELS / "rows.pt2", rows("OUTPUT__0"), "model.pt2")

    def mutants(self, kind: str, files: Files) -> Iterable[Mutant]:
        return archive_mutants(files)

    @pytest.mark.heavy
    def test_broken_files_are_answered_or_refused(self) -> None:
        super().test_broken_files_are_answered_or_refused()

    @pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS.keys())
    def test_what_happens_to_the_files_does_not_reach_a_loaded_model(  # type: ignore[override]
        self, harm: Callable[[Path], None], tmp_path: Path
    ) -> None:
        """In this process: the file is read as that of a TorchScript model is, and the other process takes long to start."""
        case = self.with_weights()
        context = case.context(tmp_path, instances=2)
        inputs = {"ROW": np.array([0, 1023])}
        with self.loaded(context) as model:
            first = Runner(model.instance(context.placements[0]), case.config)
            wanted = first.one(inputs)["OUTPUT__0"].copy()
            harm(context.version_path)
            second = Runner(model.instance(context.placements[1]), case.config)
            for runner in (first, second):
                np.testing.assert_array_equal(runner.one(inputs)["OUTPUT__0"], wanted)

    def identity(self, datatype: DataType) -> ModelCase:
        file = MODELS / f"identity_{datatype.name.lower()}.pt2"
        return ModelCase(file, identity(datatype, "OUTPUT__0"), "model.pt2")
