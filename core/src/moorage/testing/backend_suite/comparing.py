# ruff: noqa: S101 - a suite consists of assertions
"""Comparing what a model gives with what it should give."""

from __future__ import annotations

import numpy as np

from moorage.errors import MoorageError
from moorage.testing.driving import Arrays


def assert_names(error: MoorageError, *words: str) -> None:
    """The error's text has these words."""
    missing = [word for word in words if word not in str(error)]
    assert not missing, f"the error should name {', '.join(missing)}: {error}"


def assert_close(found: Arrays, wanted: Arrays) -> None:
    """The same outputs, shapes and data types; floats may differ by rounding."""
    assert set(found) == set(wanted), "return exactly the outputs that were asked for"
    for name, array in wanted.items():
        assert found[name].shape == array.shape, f"output '{name}' has another shape"
        assert found[name].dtype == array.dtype, f"output '{name}' has another data type; give what the model gives, uncast"
        if array.dtype.kind in "fV":
            np.testing.assert_allclose(found[name].astype(np.float64), array.astype(np.float64), rtol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(found[name], array, err_msg=name)


def assert_same_bits(found: np.ndarray, wanted: np.ndarray, advice: str) -> None:
    """The same array to the last bit, whatever the bits mean."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape), advice
    if wanted.dtype.kind == "O":
        assert found.tolist() == wanted.tolist(), advice
    else:
        assert np.ascontiguousarray(found).tobytes() == np.ascontiguousarray(wanted).tobytes(), advice
