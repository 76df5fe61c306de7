"""Programs of torch.export: loading them, and how they are called."""

from __future__ import annotations

import importlib
import io
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from moorage_torchscript.archive_safety import refuse_objects
from moorage_torchscript.declared import is_mutable

_FLAT_INPUTS: Final = frozenset({"PARAMETER", "BUFFER", "CONSTANT_TENSOR", "USER_INPUT"})
_SHAPES_KEPT: Final = 1024


class _Reader(logging.Filter):
    """Reads one file after the other, as torch.export can.

    What it logs meanwhile on this thread is kept back: the error says it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.local()
        self._lock = threading.Lock()
        logging.getLogger("torch.export").addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(self._thread, "reading", False):
            return True
        if record.exc_info and record.exc_info[1] is not None:
            self._thread.cause = record.exc_info[1]
        return False

    def read(self, torch: Any, content: bytes) -> Any:
        """The `ExportedProgram` in a file. Raises what PyTorch raises, or what it has logged as the reason."""
        with self._lock:
            self._thread.reading, self._thread.cause = True, None
            try:
                return torch.export.load(io.BytesIO(content))
            except Exception as error:
                raise self._thread.cause or error from error
            finally:
                self._thread.reading = False


_reader = _Reader()


def load_program(torch: Any, content: bytes, model: str) -> Any:
    """The `ExportedProgram` in a file. Raises ModelError if reading it would run code, else what PyTorch raises."""
    refuse_objects(content, model)
    return _reader.read(torch, content)


def saved(torch: Any, program: Any) -> bytes:
    """The file of a program."""
    buffer = io.BytesIO()
    torch.export.save(program, buffer)
    return buffer.getvalue()


def is_on_cpu(program: Any) -> bool:
    """Whether all that a program keeps, and the devices that its code names, are the CPU."""
    kept = [*program.state_dict.values(), *program.constants.values()]
    named = [node.kwargs.get("device") for node in program.graph.nodes]
    devices = {str(getattr(value, "device", "cpu")) for value in kept} | {str(device) for device in named if device is not None}
    return devices <= {"cpu"}


def move(program: Any, device: Any) -> Any:
    """Move a program, its code included, to a device; the program that was given is the one that is moved."""
    passes = importlib.import_module("torch.export.passes")
    moved = passes.move_to_device_pass(program, str(device))
    for part in moved.graph_module.modules():
        if hasattr(part, "recompile"):
            part.recompile()
    return moved


def call_of(torch: Any, program: Any) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """The program as a function from leaves to leaves.

    New combinations of shapes go through PyTorch's own checks; those that passed them once are run without (they cost more
    than a small model).
    """
    tree = torch.utils._pytree
    in_spec, module = program.call_spec.in_spec, program.module()

    def checked(values: Sequence[Any]) -> Sequence[Any]:
        args, kwargs = tree.tree_unflatten(list(values), in_spec)
        result: Sequence[Any] = tree.tree_leaves(module(*args, **kwargs))
        return result

    plain = None if is_mutable(program) else _plain_call(program)
    return checked if plain is None else _remembering(torch, checked, plain)


def _remembering(torch: Any, checked: Callable[..., Any], plain: Callable[..., Any]) -> Callable[[Sequence[Any]], Any]:
    seen: set[tuple[Any, ...]] = set()

    def call(values: Sequence[Any]) -> Any:
        shapes = tuple(value.shape if isinstance(value, torch.Tensor) else None for value in values)
        if shapes in seen:
            return plain(values)
        result = checked(values)
        if len(seen) >= _SHAPES_KEPT:
            seen.clear()
        seen.add(shapes)
        return result

    return call


def _plain_call(program: Any) -> Callable[[Sequence[Any]], Any] | None:
    """The graph itself with its weights bound, or None for a program that needs more around it."""
    signature = program.graph_signature
    if any(spec.kind.name not in _FLAT_INPUTS for spec in signature.input_specs):
        return None
    if any(spec.kind.name != "USER_OUTPUT" for spec in signature.output_specs):
        return None
    weights = [_weight(program, spec) for spec in signature.input_specs]
    forward, slots = program.graph_module.forward, [at for at, weight in enumerate(weights) if weight is None]

    def call(values: Sequence[Any]) -> Any:
        arguments = list(weights)
        for at, value in zip(slots, values, strict=True):
            arguments[at] = value
        return forward(*arguments)

    return call


def _weight(program: Any, spec: Any) -> Any:
    if spec.kind.name == "USER_INPUT":
        return None
    found = program.state_dict.get(spec.target)
    return program.constants[spec.target] if found is None else found
