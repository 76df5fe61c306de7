"""Imports a version's own modules without letting them meet those of another.

The modules of a version live in a package of their own with a made-up name. An `import helper` in one of them, at any
time, finds `helper.py` beside the model first: each module is given its own `__import__`. The standard library comes
before a version's files; a folder without `__init__.py` comes after what is installed. No byte code is written.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import itertools
import re
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, cast

_PREFIX = "moorage_model_"
_MARK = "__moorage_model__"
_RESERVED = frozenset({"triton_python_backend_utils"}) | sys.stdlib_module_names
_PATH = tuple(sys.path)
_numbers = itertools.count(1)
_contexts: dict[str, ImportContext] = {}
_lock = threading.Lock()


class ImportContext:
    """The modules of one version. `folders` are searched in order: the version's, then the model's."""

    def __init__(self, label: str, folders: Sequence[Path]) -> None:
        self.root = f"{_PREFIX}{re.sub(r'[^0-9A-Za-z_]', '_', label)}_{next(_numbers)}"
        self.label = label
        self.folder = folders[0]
        self.builtins = {**vars(builtins), "__import__": self._import, _MARK: self}
        loaders = ((_loader(self), SOURCE_SUFFIXES), (ExtensionFileLoader, EXTENSION_SUFFIXES))
        self._loaders = loaders
        self._finders: dict[str, FileFinder] = {}
        self._owned: dict[str, bool] = {}
        package = ModuleType(self.root)
        package.__path__ = [str(folder) for folder in folders]
        with _lock:
            sys.modules[self.root] = package
            _contexts[self.root] = self
            _forget_aliases(self)

    def load(self, file: Path) -> ModuleType:
        """The module that this file holds, executed once."""
        name = f"{self.root}.{file.stem}"
        if name not in sys.modules:
            spec = importlib.util.spec_from_file_location(name, file, loader=_loader(self)(name, str(file)))
            if spec is None or spec.loader is None:
                raise ImportError(f"{file} is no Python module")
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                sys.modules.pop(name, None)
                raise
            finally:
                self._leave_path()
        return sys.modules[name]

    def find(self, name: str, path: Sequence[str]) -> ModuleSpec | None:
        """The spec of a module in one of these folders, a file or package before a bare folder."""
        bare = []
        for folder in path:
            spec = self._finder(folder).find_spec(name)
            if spec is not None and spec.loader is not None:
                return spec
            if spec is not None:
                bare += spec.submodule_search_locations or []
        if not bare:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = bare
        return spec

    def owns(self, name: str) -> bool:
        """Whether a top-level module of this name is the version's own."""
        known = self._owned.get(name)
        if known is None:
            known = self._owned[name] = name not in _RESERVED and self._has(name)
        return known

    def _has(self, name: str) -> bool:
        full = f"{self.root}.{name}"
        if full in sys.modules:
            return True
        spec = self.find(full, sys.modules[self.root].__path__)
        return spec is not None and (spec.loader is not None or not _is_installed(name))

    def close(self) -> None:
        """Forget the modules."""
        with _lock:
            _contexts.pop(self.root, None)
            for name in [name for name in list(sys.modules) if name == self.root or name.startswith(f"{self.root}.")]:
                del sys.modules[name]
            _forget_aliases(self)
        self.builtins["__import__"] = builtins.__import__

    def _leave_path(self) -> None:
        """Take the version's folders out of `sys.path`, where models like to put them: there they would be everyone's.

        What a model has taken out of it is put back.
        """
        own = set(sys.modules[self.root].__path__)
        kept = [entry for entry in sys.path if entry not in own]
        sys.path[:] = kept + [entry for entry in _PATH if entry not in kept]

    def _finder(self, folder: str) -> FileFinder:
        finder = self._finders.get(folder)
        if finder is None:
            finder = self._finders[folder] = FileFinder(folder, *self._loaders)
        return finder

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the names are the protocol's
        locals: Mapping[str, Any] | None = None,  # noqa: A002
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`__import__` of the version's modules. A list of names comes from C code (pickle), which wants the plain name."""
        head = name.partition(".")[0]
        if level or isinstance(fromlist, list) or not self.owns(head):
            return builtins.__import__(name, globals, locals, fromlist or (), level)
        module = importlib.import_module(f"{self.root}.{name}")
        if not fromlist:
            return sys.modules[f"{self.root}.{head}"]
        return builtins.__import__(module.__name__, globals, locals, fromlist, 0)


class ModelFinder:
    """Finds the modules of all versions, and makes `importlib.import_module` and `pickle` find them by their plain names."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG004
        """What `sys.meta_path` asks for."""
        if name.startswith(_PREFIX):
            context = _contexts.get(name.partition(".")[0])
            return context.find(name, path) if context and path is not None else None
        if not _contexts or path is not None or name in _RESERVED:
            return None
        return _alias(name)


class _Alias:
    """A loader that puts a version's module under its plain name, too."""

    def __init__(self, module: ModuleType, context: ImportContext) -> None:
        self.module = module
        self.context = context

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        self._spec, self._loader = self.module.__spec__, self.module.__loader__
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__, module.__loader__ = self._spec, self._loader


_aliases: dict[str, _Alias] = {}


def calling_context() -> ImportContext | None:
    """The context of the nearest caller that is a model's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        context = frame.f_builtins.get(_MARK)
        if context is not None:
            return context if isinstance(context, ImportContext) else None
        frame = frame.f_back
    return None


def get_model_dir() -> str:
    """The version's folder of the model that calls this."""
    context = calling_context()
    if context is None:
        raise RuntimeError("get_model_dir() is for the code of a model that a server runs")
    return str(context.folder)


def _alias(name: str) -> ModuleSpec | None:
    """For an import by a library on behalf of a model: its module under the plain name, unless another version has one, too."""
    context = calling_context()
    if context is None or not context.owns(name):
        return None
    rivals = sorted(other.label for other in list(_contexts.values()) if other is not context and other.owns(name))
    if rivals:
        raise ImportError(
            f"'{name}' of {context.label} cannot be imported by its plain name, since {', '.join(rivals)} has one too; "
            f"use an import statement in the model, or give the module a name of its own",
            name=name,
        )
    loader = _Alias(importlib.import_module(f"{context.root}.{name}"), context)
    _aliases[name] = loader
    return ModuleSpec(name, cast("Any", loader))


def _forget_aliases(context: ImportContext) -> None:
    """Drop the plain names of a context that closes, or that another one claims as well."""
    for name, alias in list(_aliases.items()):
        if alias.context is context or (context.root in _contexts and context.owns(name)):
            del _aliases[name]
            if sys.modules.get(name) is alias.module:
                del sys.modules[name]


def _is_installed(name: str) -> bool:
    if name in sys.modules:
        return True
    return importlib.machinery.PathFinder.find_spec(name) is not None


def _loader(context: ImportContext) -> type[SourceFileLoader]:
    class SourceLoader(SourceFileLoader):
        def exec_module(self, module: ModuleType) -> None:
            module.__dict__["__builtins__"] = context.builtins
            super().exec_module(module)

        def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
            """Write no byte code into the repository."""

    return SourceLoader


sys.meta_path.insert(0, ModelFinder)
