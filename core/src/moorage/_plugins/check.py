"""Checks a plugin module against the hook specifications before anything of it is used."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from functools import cache

import pluggy

from moorage import hookspecs
from moorage.errors import PluginError


def manager_for(plugin: object, name: str) -> pluggy.PluginManager:
    """A pluggy manager that holds this plugin alone, so that one plugin's fault is never another's.

    Raises PluginError when a marked function is no hook, or takes arguments that the hook does not have.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    unknown = [f"'{hook}' is not a hook of moorage{_suggestion(hook)}" for hook in _marked(manager, plugin) - hook_names()]
    if unknown:
        raise PluginError("; ".join(sorted(unknown)))
    try:
        manager.register(plugin, name)
    except pluggy.PluginValidationError as error:
        raise PluginError(_wrong_arguments(manager, plugin) or str(error)) from error
    return manager


def unmarked_hooks(plugin: object, manager: pluggy.PluginManager) -> list[str]:
    """Complaints about functions that look like hooks but lack the `hookimpl` mark, and so are never called."""
    marked = _marked(manager, plugin)
    complaints = []
    for name, function in inspect.getmembers(plugin, inspect.isroutine):
        foreign = getattr(function, "__module__", None) != getattr(plugin, "__name__", None) and inspect.ismodule(plugin)
        if name.startswith("_") or name in marked or foreign:
            continue
        close = get_close_matches(name, hook_names() - marked, n=1, cutoff=0.85)
        if name in hook_names():
            complaints.append(f"function '{name}' is not marked with @hookimpl and is not called")
        elif close:
            complaints.append(f"function '{name}' is no hook; did you mean '{close[0]}', marked with @hookimpl?")
    return complaints


@cache
def hook_names() -> frozenset[str]:
    """The names of all hooks."""
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    return frozenset(name for name in dir(hookspecs) if manager.parse_hookspec_opts(hookspecs, name) is not None)


def _marked(manager: pluggy.PluginManager, plugin: object) -> set[str]:
    return {name for name in dir(plugin) if manager.parse_hookimpl_opts(plugin, name) is not None}


def _suggestion(name: str) -> str:
    close = get_close_matches(name, hook_names(), n=1)
    return f"; did you mean '{close[0]}'?" if close else f"; the hooks are {', '.join(sorted(hook_names()))}"


def _wrong_arguments(manager: pluggy.PluginManager, plugin: object) -> str:
    faults = []
    for name in sorted(_marked(manager, plugin)):
        expected = list(inspect.signature(getattr(hookspecs, name)).parameters)
        wrong = [argument for argument in inspect.signature(getattr(plugin, name)).parameters if argument not in expected]
        if wrong:
            takes = ", ".join(expected) or "no arguments"
            faults.append(f"hook '{name}' takes {takes}, not {', '.join(wrong)}")
    return "; ".join(faults)
