"""Giving memory back to the system after a model was closed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable


def _release() -> Callable[[], object]:
    """What makes the allocator of this process return what it keeps for later; nothing where there is no such call.

    tcmalloc, which comes by LD_PRELOAD, goes first: the C library's own call is there then, too, but has nothing to return.
    """
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):  # Windows
        return lambda: None
    if hasattr(library, "MallocExtension_ReleaseFreeMemory"):
        tcmalloc: Callable[[], object] = library.MallocExtension_ReleaseFreeMemory
        return tcmalloc
    if hasattr(library, "malloc_trim"):
        return lambda: library.malloc_trim(ctypes.c_size_t(0))
    return lambda: None


_give_back = _release()


def give_back() -> None:
    """Return free memory to the system. Takes milliseconds, without holding the interpreter."""
    _give_back()
