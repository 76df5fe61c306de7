"""Writes down what the plugin uses of TensorRT, as the real bindings declare it: `python make_bindings.py MODULE...`.

The fake of the tests is checked against this table, and the table against every TensorRT that is installed. With `--check`
nothing is written; it fails if a module differs.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

TABLE = Path(__file__).with_name("bindings.json")
METHODS = {
    "Runtime": ("__init__", "deserialize_cuda_engine"),
    "ICudaEngine": (
        "get_tensor_name",
        "get_tensor_mode",
        "get_tensor_dtype",
        "get_tensor_format_desc",
        "get_tensor_location",
        "get_tensor_shape",
        "get_tensor_profile_shape",
        "get_tensor_profile_values",
        "create_execution_context",
    ),
    "IExecutionContext": (
        "set_optimization_profile_async",
        "set_input_shape",
        "infer_shapes",
        "get_tensor_shape",
        "set_tensor_address",
        "set_output_allocator",
        "execute_async_v3",
    ),
    "ILogger": ("__init__", "log"),
    "IOutputAllocator": ("__init__",),
}
PROPERTIES = {
    "Runtime": ("DLA_core", "engine_host_code_allowed", "num_DLA_cores"),
    "ICudaEngine": ("num_io_tensors", "num_optimization_profiles"),
}
ENUMS = ("DataType", "ExecutionContextAllocationStrategy", "TensorIOMode", "TensorLocation")
CALLBACKS = ("reallocate_output", "reallocate_output_async", "notify_shape")
"""Methods of an output allocator that TensorRT calls, as the documentation of the class shows them."""


def table(module: ModuleType) -> dict[str, object]:
    """Names to the parameters of each overload (without self), to the members of an enumeration, or to "property"."""
    found: dict[str, object] = {}
    for owner, names in METHODS.items():
        for name in names:
            found[f"{owner}.{name}"] = overloads(getattr(getattr(module, owner), name).__doc__ or "", name)
    for owner, names in PROPERTIES.items():
        for name in names:
            assert isinstance(getattr(getattr(module, owner), name), property), name
            found[f"{owner}.{name}"] = "property"
    for name in ENUMS:
        found[name] = sorted(getattr(module, name).__members__)
    found["ILogger.Severity"] = sorted(module.ILogger.Severity.__members__)
    for name in CALLBACKS:
        shown = re.search(rf"def {name}\(self, (.*?)\)", module.IOutputAllocator.__doc__)
        found[f"IOutputAllocator.{name}"] = [shown.group(1).split(", ")] if shown else []
    return found


def overloads(doc: str, name: str) -> list[list[str]]:
    """The parameters of each signature at the head of a method's documentation: names, and types of text and numbers."""
    signatures = re.findall(rf"^(?:\d+\. )?{name}\((.*)\) -> ", doc, re.MULTILINE)
    return [[typed(*one) for one in re.findall(r"(?:^|, )(\w+): ([\w.]+)", signature)[1:]] for signature in signatures]


def typed(name: str, kind: str) -> str:
    """A parameter as the table has it."""
    plain = {"str": "str", "int": "int", "typing.SupportsInt": "int"}.get(kind, "")
    return f"{name}: {plain}" if plain else name


def main(names: list[str]) -> None:
    check = "--check" in names
    tables = {name: table(importlib.import_module(name)) for name in names if name != "--check"}
    wanted = json.loads(TABLE.read_text()) if check else next(iter(tables.values()))
    differ = {f"{module}: {name}" for module, found in tables.items() for name in wanted if found.get(name) != wanted[name]}
    if differ:
        sys.exit("these differ: " + ", ".join(sorted(differ)))
    if not check:
        TABLE.write_text(json.dumps(wanted, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
