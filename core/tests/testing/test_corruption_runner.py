"""Models in Python take the part of a framework that crashes, hangs and forgets its manners."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.config.schema import ModelConfig, ModelInput, ModelOutput
from moorage.testing import ModelCase, Mutant
from moorage.testing.corruption import Limits, Outcome, Verdict, run_harms, run_mutants
from moorage.types import DataType

pytest.importorskip("moorage_python")

SOURCE = """
import builtins, os, pathlib, signal, threading
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        pass
    def execute(self, requests):
        extra = getattr(builtins, "MOORAGE_TEST", 0)
        arrays = [pb_utils.get_input_tensor_by_name(request, "X").as_numpy() + extra for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("Y", array)]) for array in arrays]
"""
CONFIG = ModelConfig(
    name="copy",
    input=(ModelInput("X", DataType.FP32, dims=(3,)),),
    output=(ModelOutput("Y", DataType.FP32, (3,)),),
)
INITIALIZE = "        pass"


@pytest.fixture
def case(tmp_path: Path) -> ModelCase:
    return written(tmp_path, SOURCE)


def written(folder: Path, source: str) -> ModelCase:
    file = folder / "source.py"
    file.write_text(source)
    return ModelCase(file, CONFIG, "model.py")


def mutant(name: str, *, initialize: str = INITIALIZE, source: str = SOURCE) -> Mutant:
    return Mutant(name, {"model.py": source.replace(INITIALIZE, f"        {initialize}").encode()})


@pytest.mark.heavy
def test_every_end_is_told_from_the_others_and_belongs_to_its_mutant(case: ModelCase) -> None:
    mutants = [
        mutant("good"),
        mutant("crashes", initialize="os.kill(os.getpid(), signal.SIGSEGV)"),
        mutant("good after a crash"),
        mutant("exits", initialize="os._exit(3)"),
        mutant("hangs", initialize="threading.Event().wait()"),
        mutant("is broken", initialize="raise ValueError('no such weights')"),
        mutant("breaks when it runs", source=SOURCE.replace("+ extra", "+ no_such_name")),
        mutant("changes its neighbour", initialize="builtins.MOORAGE_TEST = 1"),
        mutant("good at last"),
    ]
    report = run_mutants(case, "python", mutants, limits=Limits(seconds=6))
    found = {verdict.trial: verdict for verdict in report.verdicts}
    assert [verdict.trial for verdict in report.verdicts] == [one.name for one in mutants]
    assert {name: verdict.outcome for name, verdict in found.items()} == {
        "good": Outcome.ANSWERED,
        "crashes": Outcome.CRASHED,
        "good after a crash": Outcome.ANSWERED,
        "exits": Outcome.CRASHED,
        "hangs": Outcome.HUNG,
        "is broken": Outcome.REFUSED,
        "breaks when it runs": Outcome.REFUSED,
        "changes its neighbour": Outcome.HARMED,
        "good at last": Outcome.ANSWERED,
    }
    assert "signal 11" in found["crashes"].message and "Segmentation fault" in found["crashes"].message
    assert "exit code 3" in found["exits"].message
    assert "wait" in found["hangs"].message, "where its threads were"
    assert found["is broken"].stage == "load" and "no such weights" in found["is broken"].message
    assert found["breaks when it runs"].stage == "infer"


def test_memory_without_measure_is_an_error_of_the_mutant(case: ModelCase) -> None:
    greedy = mutant("takes all", initialize="self.all = bytearray(2 ** 33)")
    report = run_mutants(case, "python", [greedy], limits=Limits(memory_mib=512))
    assert [verdict.outcome for verdict in report.verdicts] == [Outcome.REFUSED], report.explain()
    assert "MemoryError" in report.verdicts[0].message


def test_after_too_many_crashes_the_rest_is_given_up(case: ModelCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.testing.corruption.runner.MOST_DEATHS", 1)
    mutants = [mutant("crashes", initialize="os._exit(1)"), mutant("waits in vain")]
    report = run_mutants(case, "python", mutants)
    assert [verdict.trial for verdict in report.bad()] == ["crashes", "waits in vain"]
    assert "given up" in report.verdicts[1].message


def test_a_case_that_does_not_work_at_all_is_an_error_of_the_test(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"nothing broken.*NameError.*ModelCase"):
        run_mutants(written(tmp_path, "nonsense"), "python", [mutant("good")])


def test_harms_do_not_reach_a_model_that_is_in_memory(case: ModelCase) -> None:
    report = run_harms(case, "python")
    assert [verdict.outcome for verdict in report.verdicts] == [Outcome.ANSWERED] * 3, report.explain()


def test_harms_reach_a_model_that_looks_at_its_file_again(tmp_path: Path) -> None:
    looks = SOURCE.replace("+ extra", "+ pathlib.Path(__file__).stat().st_size + pathlib.Path(__file__).read_bytes()[0]")
    verdicts: list[Verdict] = list(run_harms(written(tmp_path, looks), "python").verdicts)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.CHANGED] * 3
