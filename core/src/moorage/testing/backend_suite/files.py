# ruff: noqa: S101 - a suite consists of assertions
"""Files that are broken, and files that change under a loaded model: tried in a process that may die of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from moorage.testing.backend_suite.base import BackendSuite
from moorage.testing.corruption import Mutant, byte_mutants, run_harms, run_mutants
from moorage.testing.model_case import Files


class FileTests(BackendSuite):
    """What a server must survive."""

    def test_what_happens_to_the_files_does_not_reach_a_loaded_model(self) -> None:
        report = run_harms(self.with_weights(), self.backend.name, limits=self.mutant_limits)
        assert not report.bad(), report.explain()

    def test_broken_files_are_answered_or_refused(self) -> None:
        for kind, case in self.formats().items():
            mutants = self._mutants(kind, case.files())
            report = run_mutants(case, self.backend.name, mutants, open_config=self.completes, limits=self.mutant_limits)
            assert not report.bad(), f"{kind}: {report.explain()}"

    def _mutants(self, kind: str, files: Files) -> Iterator[Mutant]:
        """Half of them, at most, broken with knowledge of the format; the rest are broken at random."""
        known = list(islice(self.mutants(kind, files), self.mutant_count // 2))
        yield from known
        yield from byte_mutants(files, self.mutant_count - len(known))
