"""Loads plugins: the built-in ones that are handed in, and those behind entry points."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Collection, Iterable
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import cast

import pluggy
from attrs import evolve, field, frozen

from moorage import hookspecs
from moorage._plugins.check import manager_for, unmarked_hooks
from moorage._plugins.fold import Contribution, contributions, tables
from moorage._plugins.registry import Completer, Discoverer, Observer, PluginInfo, Registry, Selector
from moorage.backend import ModelMatch
from moorage.config.schema import ModelConfig
from moorage.errors import MoorageError, PluginError, described


@frozen(eq=False)
class _Plugin:
    """A plugin on its way into the registry; without a manager it is not used."""

    info: PluginInfo
    builtin: bool = False
    manager: pluggy.PluginManager | None = None
    offers: tuple[Contribution, ...] = ()
    complaints: tuple[str, ...] = field(default=())


def load_registry(*, blocked: Collection[str] = (), builtins: Iterable[tuple[str, object]] = ()) -> Registry:
    """Load all plugins and fold what they offer into tables.

    `builtins` are (name, module) pairs with the same hooks as any plugin; they come first. `blocked` names plugins or
    distributions that are listed but not imported. Nothing a plugin does wrong raises: it is recorded in `Registry.plugins`.
    """
    plugins = [_read(_Plugin(PluginInfo(name), builtin=True), partial(_same, module)) for name, module in builtins]
    plugins += [_load(entry, blocked) for entry in _entries()]
    return _registry(_told_apart(plugins))


def _told_apart(plugins: list[_Plugin]) -> list[_Plugin]:
    """The plugins, with a complaint for those of different distributions that have the same name."""
    named: dict[str, list[str]] = {}
    for plugin in plugins:
        if not plugin.builtin:
            named.setdefault(plugin.info.name, []).append(plugin.info.distribution)
    return [
        plugin if plugin.builtin or len(owners) == 1 else evolve(plugin, complaints=(*plugin.complaints, _namesakes(owners)))
        for plugin in plugins
        for owners in (named.get(plugin.info.name, []),)
    ]


def _namesakes(owners: list[str]) -> str:
    return f"distributions {' and '.join(owners)} have a plugin of the same name; they can be told apart by their distributions"


def _same(module: object) -> object:
    return module


def _entries() -> list[EntryPoint]:
    """Sorted, so that the order of installation decides nothing."""
    return sorted(entry_points(group=hookspecs.PROJECT), key=lambda entry: (_distribution(entry), entry.name))


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else ""


def _load(entry: EntryPoint, blocked: Collection[str]) -> _Plugin:
    version = entry.dist.version if entry.dist is not None else ""
    plugin = _Plugin(PluginInfo(entry.name, _distribution(entry), version))
    if entry.name in blocked or plugin.info.distribution in blocked:
        return evolve(plugin, complaints=("it is switched off",))
    return _read(plugin, entry.load)


def _read(plugin: _Plugin, load: Callable[[], object]) -> _Plugin:
    """Import and check one plugin. An exception of any kind is recorded, none gets out."""
    try:
        module = load()
        manager = manager_for(module, plugin.info.name)
        offers, faults = contributions(manager)
    except PluginError as error:
        return evolve(plugin, complaints=(str(error),))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - a module may raise anything while it is imported
        return evolve(plugin, complaints=(traceback.format_exc().rstrip(),))
    return evolve(plugin, manager=manager, offers=offers, complaints=(*faults, *unmarked_hooks(module, manager)))


def _registry(plugins: list[_Plugin]) -> Registry:
    folded = tables([(plugin.info, plugin.builtin, plugin.offers) for plugin in plugins])
    infos = []
    for plugin, (registered, refusals) in zip(plugins, folded.outcomes, strict=True):
        hooks = tuple(f"hook {name}" for name in _FUNCTIONS if _implements(plugin, name))
        error = "; ".join((*plugin.complaints, *refusals))
        infos.append(evolve(plugin.info, registered=(*registered, *hooks), error=error))
    return Registry(
        storages=folded.storages,
        backends=folded.backends,
        platforms=folded.platforms,
        control_modes=folded.control_modes,
        discoverers=cast("tuple[tuple[str, Discoverer], ...]", _functions(plugins, "discover_model")),
        selectors=cast("tuple[tuple[str, Selector], ...]", _functions(plugins, "select_model_file")),
        completers=cast("tuple[tuple[str, Completer], ...]", _functions(plugins, "complete_config")),
        observers=cast("tuple[tuple[str, Observer], ...]", _functions(plugins, "model_state_changed")),
        plugins=tuple(infos),
        refused=folded.refused,
    )


_FUNCTIONS = {
    "discover_model": ("files",),
    "select_model_file": ("config", "files", "device"),
    "complete_config": ("config", "files"),
    "model_state_changed": ("change",),
}
"""Hooks that are called later on, with their arguments."""

_ANSWERS: dict[str, type] = {"discover_model": ModelMatch, "select_model_file": str, "complete_config": ModelConfig}
"""What they answer, if not None."""


def _implements(plugin: _Plugin, hook: str) -> bool:
    return plugin.manager is not None and bool(getattr(plugin.manager.hook, hook).get_hookimpls())


def _functions(plugins: Iterable[_Plugin], hook: str) -> tuple[tuple[str, Callable[..., object]], ...]:
    return tuple((plugin.info.name, _caller(plugin, hook)) for plugin in plugins if _implements(plugin, hook))


def _caller(plugin: _Plugin, hook: str) -> Callable[..., object]:
    """A plain function that calls one plugin's hook, positionally, and gives None for "nothing to say"."""
    call = getattr(cast("pluggy.PluginManager", plugin.manager).hook, hook)

    def function(*arguments: object) -> object:
        try:
            answers = call(**dict(zip(_FUNCTIONS[hook], arguments, strict=True)))
        except MoorageError:
            raise  # the plugin has found out what is wrong, and says so
        except BaseException as error:
            raise PluginError(f"plugin '{plugin.info.name}' failed in {hook}: {described(error)}") from error
        answer = answers[0] if answers else None
        if not isinstance(answer, _ANSWERS.get(hook, object) | None):
            called = type(answer).__name__
            raise PluginError(f"plugin '{plugin.info.name}' answered {hook} with a {called}, not a {_ANSWERS[hook].__name__}")
        return answer

    return function
