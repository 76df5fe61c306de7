"""The fakes are like the real ones: those that are installed are looked at, the rest is in a table made from them."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import fake_cuda
import fake_tensorrt
import make_bindings
import pytest
from fake_cuda import FakeCuda
from fake_tensorrt import FakeTensorRt

import moorage_tensorrt
from moorage_tensorrt.memory import make_allocator

TABLE: dict[str, Any] = json.loads(make_bindings.TABLE.read_text())
METHODS = [name for name in TABLE if isinstance(TABLE[name], list) and TABLE[name] and isinstance(TABLE[name][0], list)]
SOURCES = [path.read_text() for path in Path(moorage_tensorrt.__file__).parent.glob("*.py")]


def parameters(function: Any) -> list[str]:
    """As the table has them, the type where it says one."""
    found = list(inspect.signature(function).parameters.values())
    return [one.name if one.annotation not in ("int", "str") else f"{one.name}: {one.annotation}" for one in found]


def untyped(names: list[str]) -> list[str]:
    return [name.partition(":")[0] for name in names]


@pytest.mark.parametrize("name", [name for name in METHODS if not name.endswith("__init__") and name.split(".")[0][0] == "I"])
def test_methods_of_the_fake_take_what_the_real_ones_take(name: str) -> None:
    owner, method = name.split(".")
    if owner == "IOutputAllocator":
        function = getattr(make_allocator(FakeTensorRt(FakeCuda()), None), method)  # type: ignore[arg-type]
        assert untyped(parameters(function)) == TABLE[name][0]
        return
    found = parameters(getattr(getattr(fake_tensorrt, owner), method))[1:]
    kinds = [one for one in TABLE[name] if untyped(one) == untyped(found)]
    assert kinds, f"{name} takes {TABLE[name]}"
    assert [one for one in found if ":" in one] == [one for one in kinds[0] if ":" in one]


def test_the_fake_has_nothing_that_the_real_one_has_not() -> None:
    for owner in ("Runtime", "ICudaEngine", "IExecutionContext"):
        public = {name for name in vars(getattr(fake_tensorrt, owner)) if not name.startswith("_")}
        assert {f"{owner}.{name}" for name in public} <= set(TABLE)


@pytest.mark.parametrize("name", make_bindings.ENUMS)
def test_enumerations_have_the_members_of_the_real_ones(name: str) -> None:
    assert sorted(getattr(fake_tensorrt, name).__members__) == TABLE[name]


def test_severities_are_the_real_ones() -> None:
    assert sorted(fake_tensorrt.ILogger.Severity.__members__) == TABLE["ILogger.Severity"]


def test_the_plugin_uses_all_that_is_in_the_table() -> None:
    """What is not used any more leaves the table, and with it the fake."""
    source = "\n".join(SOURCES)
    names = {name.rpartition(".")[2] for name in TABLE} - {"DataType", "TensorIOMode", "TensorLocation", "Severity"}
    assert {name for name in names if name not in source} == set()


@pytest.mark.parametrize("module", ["tensorrt", "tensorrt_lean", "tensorrt_dispatch", "tensorrt_rtx"])
def test_the_table_is_what_the_installed_bindings_say(module: str) -> None:
    try:
        real = importlib.import_module(module)
    except Exception as error:
        pytest.skip(f"{module} is not installed: {error}")
    assert make_bindings.table(real) == TABLE


CUDA = [name for name in vars(fake_cuda.FakeCuda) if name.startswith("cuda") and name != "cudaMemcpyKind"]


@pytest.mark.parametrize("name", CUDA)
def test_functions_of_the_fake_cuda_take_what_the_real_ones_take(name: str) -> None:
    from cuda.bindings import runtime

    signature = (getattr(runtime, name).__doc__ or "").splitlines()[0]
    real = [one.partition(":")[0].split()[-1] for one in signature.partition("(")[2].rstrip(")").split(", ") if one]
    assert list(inspect.signature(getattr(FakeCuda(), name)).parameters) == real


def test_kinds_of_copies_are_named_like_the_real_ones() -> None:
    from cuda.bindings import runtime

    assert {name for name in vars(fake_cuda.Kinds) if name.startswith("cuda")} <= set(runtime.cudaMemcpyKind.__members__)


def test_the_real_cuda_without_a_driver_gives_codes_not_crashes() -> None:
    from cuda.bindings import runtime

    from moorage_tensorrt.driver import trouble

    code, *_ = runtime.cudaGetDeviceCount()
    assert bool(int(code)) == bool(trouble())
