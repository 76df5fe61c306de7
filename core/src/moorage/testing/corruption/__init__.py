"""Broken model files, tried in a real server in a process of its own.

    case = ModelCase(HERE / "add_sub.onnx", CONFIG, "model.onnx")
    report = run_mutants(case, "onnxruntime", byte_mutants(case.files(), 300))
    assert not report.bad(), report.explain()

A mutant is right if it answers, or is refused with an error that names the model and a cause. It may not end the process, hang,
or change what another model answers.
"""

from moorage.testing.corruption.harms import HARMS
from moorage.testing.corruption.mutants import Mutant, byte_mutants
from moorage.testing.corruption.runner import Limits, run_harms, run_mutants
from moorage.testing.corruption.verdicts import Outcome, Report, Verdict

__all__ = ["HARMS", "Limits", "Mutant", "Outcome", "Report", "Verdict", "byte_mutants", "run_harms", "run_mutants"]
