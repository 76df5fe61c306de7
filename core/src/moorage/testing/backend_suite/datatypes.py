# ruff: noqa: S101 - a suite consists of assertions
"""Data types: those that the backend carries come out as they went in, the others are refused."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from moorage.errors import MoorageError
from moorage.testing.backend_suite.base import DATATYPES, BackendSuite
from moorage.testing.backend_suite.comparing import assert_close, assert_names, assert_same_bits
from moorage.testing.model_case import ModelCase
from moorage.types import DataType

WORDS = (b"", b"a\0b", b"\0", "\u00e9 \u20ac \U0001f6a2".encode(), b"b'quoted'", b'"', b" spaced ", b"x" * 5000)
NO_TEXT = (b"fine", b"\xff\xfe\x00\x80")
MIB = 2**20


class DataTypeTests(BackendSuite):
    """One test for each data type, and each of its special values."""

    @pytest.mark.parametrize("datatype", DATATYPES, ids=lambda datatype: datatype.name)
    def test_carries_data_type(self, datatype: DataType, tmp_path: Path, rng: np.random.Generator) -> None:
        case = self._identity(datatype)
        inputs = case.sample(rng, rows=2)
        with self.runner(case, tmp_path) as runner:
            assert_close(runner.one(inputs), {case.config.output[0].name: next(iter(inputs.values()))})

    @pytest.mark.parametrize("datatype", DATATYPES, ids=lambda datatype: datatype.name)
    def test_carries_every_value_of_a_data_type(self, datatype: DataType, tmp_path: Path) -> None:
        case = self._identity(datatype)
        values = special_values(datatype)
        name, wanted = case.config.input[0].name, _shaped(case, values)
        if wanted is None:
            pytest.skip("the model's dims do not take this many values; give it one dim of any size")
        with self.runner(case, tmp_path) as runner:
            found = runner.one({name: wanted})[case.config.output[0].name]
        assert_same_bits(found, wanted, f"{datatype.name} values must come out as they went in, to the last bit")

    def test_refuses_the_data_types_that_it_cannot_carry(self, tmp_path: Path) -> None:
        carried = self.identities()
        if not carried:
            pytest.skip("the plugin does not say what it carries")
        with self.served(tmp_path) as server:
            for datatype in (one for one in DATATYPES if one not in carried):
                case = self.add_sub().with_type(datatype)
                name = f"model_{datatype.name.lower()}"
                case.put(tmp_path, case.configured(self.backend.name), name=name)
                with pytest.raises(MoorageError) as raised:
                    server.load(name)
                assert_names(raised.value, name, datatype.config)

    def test_strings_that_are_no_text_are_kept_or_refused(self, tmp_path: Path) -> None:
        case = self._identity(DataType.BYTES)
        name, output = case.config.input[0].name, case.config.output[0].name
        wanted = _shaped(case, _objects(NO_TEXT))
        if wanted is None:
            pytest.skip("the model's dims do not take two values")
        with self.runner(case, tmp_path) as runner:
            if self.strings_are_text:
                with pytest.raises(MoorageError, match=name):
                    runner.one({name: wanted})
            else:
                advice = "strings that are not UTF-8 must not change; set `strings_are_text` if the framework cannot have them"
                assert_same_bits(runner.one({name: wanted})[output], wanted, advice)

    def test_an_empty_tensor_is_answered_or_refused(self, tmp_path: Path) -> None:
        case = self._identity(DataType.FP32)
        config = case.config
        if -1 not in config.input[0].dims:
            pytest.skip("the model has no dim of any size")
        sizes = tuple(max(size, 0) for size in config.input[0].dims)
        empty = np.zeros((1, *sizes) if config.batches else sizes, np.float32)
        with self.runner(case, tmp_path) as runner:
            try:
                assert_close(runner.one({config.input[0].name: empty}), {config.output[0].name: empty})
            except MoorageError as error:
                assert_names(error, case.name)

    def test_memory_stays_flat_over_requests(self, tmp_path: Path) -> None:
        case = self._identity(DataType.FP32)
        statm = Path("/proc/self/statm")
        if case.config.input[0].dims != (-1,) or not statm.exists():
            pytest.skip("the model has not one dim of any size, or the system does not tell the memory of a process")
        name, output = case.config.input[0].name, case.config.output[0].name
        shape = (1, MIB // 4) if case.config.batches else (MIB // 4,)
        readings = []
        with self.runner(case, tmp_path) as runner:
            for index in range(220):
                array = np.full(shape, index, np.float32)
                assert runner.one({name: array})[output].ravel()[-1] == index
                if index in {19, 219}:
                    gc.collect()
                    readings.append(int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
        grown = (readings[1] - readings[0]) / MIB
        assert grown < self.memory_growth_mib, f"200 requests of 1 MiB left {grown:.0f} MiB behind; keep no inputs or outputs"

    def _identity(self, datatype: DataType) -> ModelCase:
        case = self.identities().get(datatype)
        if case is None:
            pytest.skip(f"no model with {datatype.name}")
        return case


def special_values(datatype: DataType) -> np.ndarray:
    """The values of a type that get lost most easily: limits, infinities, signed zeros, strings with anything in them."""
    if datatype is DataType.BYTES:
        return _objects(WORDS)
    if datatype is DataType.BOOL:
        return np.array([True, False, False, True, True, True, False, False])
    if datatype in (DataType.FP16, DataType.FP32, DataType.FP64, DataType.BF16):
        info: Any = ml_dtypes.finfo(datatype.numpy)  # type: ignore[no-untyped-call]
        numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, float(info.max), float(info.tiny), -1.5]
        return np.array(numbers).astype(datatype.numpy)
    limits = np.iinfo(datatype.numpy)
    return np.array([limits.min, limits.max, 0, 1, limits.max - 1, limits.max // 2, 2, 3], datatype.numpy)


def _objects(words: tuple[bytes, ...]) -> np.ndarray:
    array = np.empty(len(words), dtype=object)
    array[:] = words
    return array


def _shaped(case: ModelCase, values: np.ndarray) -> np.ndarray | None:
    """The values in the shape of the case's input, or None if they do not fit."""
    dims = case.config.input[0].dims
    if dims.count(-1) != 1 or len(values) % abs(int(np.prod(dims))):
        return None
    return values.reshape((1, *dims) if case.config.batches else dims)
