"""The frozen tables of everything that plugins have registered, and look-ups that explain what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from attrs import evolve, field, frozen

from moorage._plugins.advice import provider
from moorage.backend import Backend, ModelMatch, Placement, VersionFiles
from moorage.config.schema import ModelConfig
from moorage.control import ControlMode
from moorage.errors import NotFound
from moorage.hookspecs import StateChange
from moorage.storage import Storage

Discoverer = Callable[[VersionFiles], ModelMatch | None]
Selector = Callable[[ModelConfig, VersionFiles, Placement], str | None]
Completer = Callable[[ModelConfig, VersionFiles], ModelConfig | None]
Observer = Callable[[StateChange], None]
T = TypeVar("T")

_TELLING = 4
"""Letters from which on a part of a name tells what was meant."""
_CALLED = {"backend": "backend", "storage": "storage scheme", "control mode": "model control mode", "platform": "platform"}


@frozen
class PluginInfo:
    """A plugin as `moorage plugins` lists it.

    `registered` says what it brings ("backend onnxruntime", "storage s3", "hook discover_model"); `error`, if not empty, why
    it or a part of it is not used, with the traceback where there is one.
    """

    name: str
    distribution: str = ""
    version: str = ""
    registered: tuple[str, ...] = ()
    error: str = ""


@frozen(eq=False)
class Registry:
    """What the installed plugins offer. The functions are paired with the name of their plugin."""

    storages: Mapping[str, type[Storage]] = field(factory=dict)
    backends: Mapping[str, type[Backend]] = field(factory=dict)
    platforms: Mapping[str, str] = field(factory=dict)
    """Platform -> name of the backend that serves it."""
    control_modes: Mapping[str, type[ControlMode]] = field(factory=dict)
    discoverers: tuple[tuple[str, Discoverer], ...] = ()
    selectors: tuple[tuple[str, Selector], ...] = ()
    completers: tuple[tuple[str, Completer], ...] = ()
    observers: tuple[tuple[str, Observer], ...] = ()
    plugins: tuple[PluginInfo, ...] = ()
    refused: Mapping[tuple[str, str], str] = field(factory=dict)
    """(kind, name) -> why nothing is registered under it although plugins offer it."""

    def backend(self, name: str) -> type[Backend]:
        """The backend of this name. Raises NotFound saying what to install, which plugin is broken, or what there is."""
        return self._find("backend", name, self.backends)

    def platform(self, name: str) -> str:
        """The name of the backend that serves this platform. Raises NotFound as `backend` does."""
        return self._find("platform", name, self.platforms)

    def storage(self, scheme: str) -> type[Storage]:
        """The storage for a URL scheme. Raises NotFound as `backend` does."""
        return self._find("storage", scheme, self.storages)

    def control_mode(self, name: str) -> type[ControlMode]:
        """The model control mode of this name. Raises NotFound as `backend` does."""
        return self._find("control mode", name, self.control_modes)

    def _find(self, kind: str, name: str, table: Mapping[str, T]) -> T:
        found = table.get(name)
        if found is None:
            raise NotFound(f"there is no {_CALLED[kind]} '{name}': {self._reason(kind, name, table)}")
        return found

    def _reason(self, kind: str, name: str, table: Iterable[str]) -> str:
        if (kind, name) in self.refused:
            return self.refused[kind, name]
        package = provider(kind, name)
        broken = [plugin for plugin in self.plugins if plugin.error]
        if package is not None:
            blamed = [plugin for plugin in broken if _same_distribution(plugin.distribution, package.distribution)]
            return _broken(blamed) if blamed else package.advice
        there = ", ".join(sorted(table)) or "none"
        close = get_close_matches(name, list(table), n=1) or _containing(name, table)
        hint = f"did you mean '{close[0]}'? " if close else ""
        return f"{hint}installed are: {there}" + (f"; {_suspects(broken, name)}" if broken else "")


def _containing(name: str, table: Iterable[str]) -> list[str]:
    """The first name in the table that holds `name` or is held by it, as "onnx" and "onnxruntime"."""
    long = (known for known in sorted(table) if min(len(known), len(name)) >= _TELLING)
    return [known for known in long if name in known or known in name][:1]


def _suspects(plugins: Iterable[PluginInfo], name: str) -> str:
    """The problems of plugins that could have brought `name`: of the one called so the whole, of the others the last line."""
    ordered = sorted(plugins, key=lambda plugin: plugin.name == name)
    return _broken(p if p.name == name else evolve(p, error=p.error.rpartition("\n")[2]) for p in ordered)


def _broken(plugins: Iterable[PluginInfo]) -> str:
    return "; ".join(f"plugin '{p.name}' ({p.distribution or 'built in'}) has a problem: {p.error}" for p in plugins)


def _same_distribution(one: str, other: str) -> bool:
    """Names of distributions are equal whatever their case and separators."""
    return re.sub(r"[-_.]+", "-", one).lower() == re.sub(r"[-_.]+", "-", other).lower()
