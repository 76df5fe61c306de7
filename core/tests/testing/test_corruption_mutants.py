from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.errors import ModelError, NotFound
from moorage.testing.corruption import Outcome, Report, Verdict, byte_mutants
from moorage.testing.corruption.child import is_clear, same_arrays
from moorage.testing.corruption.mutants import _CHANGES

FILES = {"model.xml": b"<net>" + bytes(range(200)), "model.bin": bytes(4096)}

paths = st.sampled_from(["model.bin", "folder/weights.0", "saved_model.pb"])


def test_the_same_seed_makes_the_same_mutants() -> None:
    assert byte_mutants(FILES, 60, seed=3) == byte_mutants(FILES, 60, seed=3)
    assert byte_mutants(FILES, 60, seed=3) != byte_mutants(FILES, 60, seed=4)


def test_every_kind_of_change_is_there_and_each_has_a_name_of_its_own() -> None:
    mutants = byte_mutants(FILES, 100)
    names = [mutant.name for mutant in mutants]
    assert len(set(names)) == 100
    for kind, _ in _CHANGES:
        assert any(kind in name for name in names)


def test_each_file_is_emptied_and_left_out() -> None:
    mutants = {mutant.name: mutant.files for mutant in byte_mutants(FILES, 10)}
    assert mutants["without model.xml"] == {"model.bin": FILES["model.bin"]}
    assert mutants["model.bin: empty"] == {**FILES, "model.bin": b""}


@given(st.dictionaries(paths, st.binary(max_size=200), min_size=1), st.integers(0, 100))
def test_mutants_of_any_files_can_be_made_and_leave_the_other_files_alone(files: dict[str, bytes], seed: int) -> None:
    for mutant in byte_mutants(files, 40, seed):
        assert mutant.files.keys() <= files.keys()
        assert sum(mutant.files.get(path) != content for path, content in files.items()) <= 1


def test_most_mutants_differ_from_the_original() -> None:
    assert sum(mutant.files != FILES for mutant in byte_mutants(FILES, 100)) > 80


@pytest.mark.parametrize(
    "error, clear",
    [
        (ModelError("model 'net' version 1: cannot load model.bin: it is empty"), True),
        (ModelError("model 'net': "), False),
        (ModelError("cannot load: it is empty"), False),
        (NotFound("model 'net'"), False),
    ],
)
def test_an_error_is_clear_if_it_names_the_model_and_a_cause(error: ModelError, clear: bool) -> None:
    assert is_clear(error, "net") == clear


def test_arrays_are_compared_by_their_bits() -> None:
    nan, words = np.array([np.nan, -0.0]), np.array([b"a", b"b"], dtype=object)
    assert same_arrays({"X": nan, "S": words}, {"X": nan.copy(), "S": words.copy()})
    assert not same_arrays({"X": nan}, {"X": np.array([np.nan, 0.0])})
    assert not same_arrays({"S": words}, {"S": words[::-1]})
    assert not same_arrays({"X": nan}, {"Y": nan})
    assert not same_arrays({"X": nan}, {"X": nan.astype(np.float32)})


def test_a_report_explains_what_is_bad_and_what_to_do() -> None:
    report = Report(
        [Verdict("one", Outcome.ANSWERED), Verdict("two", Outcome.REFUSED), Verdict("three", Outcome.CRASHED, "", "signal 11")]
    )
    assert [verdict.trial for verdict in report.bad()] == ["three"]
    text = report.explain()
    assert "1 of 3" in text
    assert "three: ended the process: signal 11" in text
    assert "what to do where it ended the process" in text
    assert report.count(Outcome.REFUSED) == 1
