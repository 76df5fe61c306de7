"""Archives of torch.export: PyTorch unpickles parts of them without a guard, so those that could do harm are refused."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from typing import Final

from moorage.errors import ModelError
from moorage_torchscript.contents import NotAsFoundError, archive, member
from moorage_torchscript.pickles import BrokenPickleError, foreign

_ZIP: Final = b"PK"
_OBJECTS: Final = "opaque_obj"
"""What the parts are called that hold a pickle of any Python object."""


def refuse_objects(content: bytes, model: str) -> None:
    """Raises ModelError for a file with pickles that bring in more than tensors and containers, or that is damaged."""
    try:
        outer = archive(content)
        unpickled = frozenset(_unpickled(outer))
        for entry in outer.infolist():
            for name, classes in _foreign_in(entry.filename, member(outer, entry), unpickled):
                raise ModelError(
                    f"model '{model}': {name} in the file holds Python objects ({classes}); unpickling them could run any "
                    "code, so it is not loaded; export the model with tensors alone"
                )
    except NotAsFoundError as error:
        raise ModelError(f"model '{model}': the file is damaged ({error}); upload it again") from error


def _unpickled(outer: zipfile.ZipFile) -> Iterator[str]:
    """The last parts of the names of what PyTorch will unpickle, according to the lists of weights."""
    for name in outer.namelist():
        if name.endswith("_config.json"):
            yield from _listed(name, member(outer, name))
        elif name.endswith(".pt"):
            yield name.rpartition("/")[2]


def _listed(name: str, data: bytes) -> Iterator[str]:
    try:
        entries = json.loads(data)["config"].values()
        yield from (str(entry["path_name"]).rpartition("/")[2] for entry in entries if entry.get("use_pickle", True))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise NotAsFoundError(f"{name}: {error!r}") from error


def _foreign_in(name: str, data: bytes, unpickled: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The pickles of a part that would bring in more than tensors, with what that is."""
    last = name.rpartition("/")[2]
    if last.startswith(_OBJECTS):
        yield name, "an object of its own"
    elif data.startswith(_ZIP):
        yield from _in_inner(name, data, needed=last in unpickled)
    elif data and last in unpickled:
        yield name, "in PyTorch's old format, which cannot be looked into"


def _in_inner(name: str, data: bytes, *, needed: bool) -> Iterator[tuple[str, str]]:
    """Look into a file of torch.save. What only begins like one and is not unpickled holds numbers."""
    try:
        inner = archive(data)
    except NotAsFoundError:
        if needed:
            raise
        return
    for entry in inner.infolist():
        if entry.filename.endswith(".pkl"):
            yield from _named(f"{name}/{entry.filename}", member(inner, entry))


def _named(name: str, data: bytes) -> Iterator[tuple[str, str]]:
    try:
        classes = ", ".join(foreign(data))
    except BrokenPickleError:
        classes = "a pickle that cannot be read"
    if classes:
        yield name, classes
