"""Models whose files come with the load request: they are written to a private folder that lives as long as they are used."""

from __future__ import annotations

import hashlib
import shutil
import weakref
from collections.abc import Mapping, Sequence

from moorage._repository.fingerprint import of_folder
from moorage._repository.layout import read_folder
from moorage._repository.scan import ModelFolder, Repository
from moorage._storage import LocalStorage, Scratch
from moorage.control import ModelId
from moorage.errors import Internal, RequestError
from moorage.storage import Entry

LONGEST_PATH = 1024
LONGEST_NAME = 255
"""Bytes that the path of a file, and each part of it, may have."""


class OverrideStorage(LocalStorage):
    """A private repository of one model. Its folder is removed when nothing refers to this object any more."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch  # which is to be there as long as this folder is
        self.root = scratch.folder("override")
        self._remove = weakref.finalize(self, shutil.rmtree, self.root, ignore_errors=True)


def stage(model_id: ModelId, files: Mapping[str, bytes], scratch: Scratch) -> ModelFolder:
    """Write the files of a model to a private folder. `files` maps paths below the model's folder to contents.

    Raises RequestError for a path that leaves the folder, and for one that needs a file to be a folder.
    """
    _check_paths(files)
    try:
        storage = OverrideStorage(scratch)
        for path, content in files.items():
            target = storage.root / model_id.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    except OSError as error:
        raise Internal(f"model '{model_id}': the files of the request could not be stored: {error}") from error
    entries = [Entry(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in files.items()]
    folder = read_folder(model_id.name, entries)
    return ModelFolder(model_id, Repository(str(storage.root), storage), folder, of_folder(folder))


def _leaves(path: str, segments: Sequence[str]) -> bool:
    return "\\" in path or "\0" in path or any(segment in ("", ".", "..") for segment in segments)


def _too_long(path: str, segments: Sequence[str]) -> bool:
    longest = max(len(segment.encode(errors="surrogatepass")) for segment in segments)
    return longest > LONGEST_NAME or len(path.encode(errors="surrogatepass")) > LONGEST_PATH


def _check_paths(files: Mapping[str, bytes]) -> None:
    for path in files:
        segments = path.split("/")
        if _leaves(path, segments) or _too_long(path, segments):
            shown = path[:80].replace("\0", "\\0")
            raise RequestError(f"parameter 'file:{shown}': give a path below the model's folder, such as file:1/model.py")
        parents = ("/".join(segments[:depth]) for depth in range(1, len(segments)))
        blocked = next((parent for parent in parents if parent in files), None)
        if blocked is not None:
            raise RequestError(f"parameter 'file:{path}': '{blocked}' is a file of the same request, not a folder")
