"""Which Python objects a pickle would bring in: read off its opcodes, without running it."""

from __future__ import annotations

import pickletools
from collections.abc import Iterator
from typing import Final

UNKNOWN: Final = "?"
"""Stands for a name that the pickle puts together while it runs."""

_MOST_OPCODES: Final = 2_000_000
_TEXT: Final = frozenset({"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"})
_STORE: Final = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_FETCH: Final = frozenset({"GET", "BINGET", "LONG_BINGET"})
_EXTENSIONS: Final = frozenset({"EXT1", "EXT2", "EXT4"})

_PLAIN_MODULES: Final = frozenset({"torch", "torch._utils", "torch.storage", "torch._tensor"})
_PLAIN_NAMES: Final = frozenset({"Size", "device", "dtype", "layout", "memory_format", "_set_serialized_dtype"})
_PLAIN_OTHERS: Final = frozenset({("collections", "OrderedDict"), ("builtins", "set"), ("__builtin__", "set")})


class BrokenPickleError(ValueError):
    """These bytes are no whole pickle."""


def imports(data: bytes) -> frozenset[tuple[str, str]]:
    """The (module, name) pairs that a pickle imports. Raises BrokenPickleError if it is none, or an endless one."""
    found: set[tuple[str, str]] = set()
    memo: dict[int, str | None] = {}
    top: list[str | None] = []  # texts on the top of the stack; None stands for anything else
    try:
        for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if number > _MOST_OPCODES:
                raise BrokenPickleError("it has too many parts")
            name = opcode.name
            if name in ("GLOBAL", "INST"):
                module, _, member = str(argument).partition(" ")
                found.add((module, member))
            elif name == "STACK_GLOBAL":
                found.add(_pair(top))
            elif name in _EXTENSIONS:
                found.add((UNKNOWN, UNKNOWN))
            _follow(name, argument, top, memo)
    except BrokenPickleError:
        raise
    except Exception as error:
        raise BrokenPickleError(str(error)) from error
    return frozenset(found)


def is_plain(name: tuple[str, str]) -> bool:
    """Whether this import is one that tensors and plain containers need, and that can do no harm."""
    module, member = name
    if name in _PLAIN_OTHERS:
        return True
    if module not in _PLAIN_MODULES:
        return False
    return member in _PLAIN_NAMES or member.startswith("_rebuild_") or member.endswith("Storage") or _is_dtype(module, member)


def foreign(data: bytes) -> Iterator[str]:
    """The imports of a pickle that are not plain, as "module.name"."""
    yield from sorted(f"{module}.{member}" for module, member in imports(data) if not is_plain((module, member)))


def _is_dtype(module: str, member: str) -> bool:
    return module == "torch" and member.startswith(("float", "bfloat", "int", "uint", "bool", "complex", "qint", "quint"))


def _pair(top: list[str | None]) -> tuple[str, str]:
    """What STACK_GLOBAL imports: known only if the two texts were pushed right before it."""
    if len(top) < 2 or top[-1] is None or top[-2] is None:
        return (UNKNOWN, UNKNOWN)
    return (top[-2], top[-1])


def _follow(name: str, argument: object, top: list[str | None], memo: dict[int, str | None]) -> None:
    """Keep `top` right: texts pushed in a row stay known, anything else makes the stack unknown."""
    if name in _TEXT:
        top.append(str(argument))
    elif name in _FETCH and isinstance(argument, int):
        top.append(memo.get(argument))
    elif name in _STORE and isinstance(argument, int):
        memo[argument] = top[-1] if top else None
    elif name == "MEMOIZE":
        memo[len(memo)] = top[-1] if top else None
    elif name not in ("PROTO", "FRAME"):
        top.clear()
