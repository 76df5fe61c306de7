"""Folds what the plugins offer into tables with one owner for each name."""

from __future__ import annotations

import inspect
import traceback
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pluggy
from attrs import field, frozen

from moorage._plugins.registry import PluginInfo
from moorage.backend import Backend
from moorage.control import ControlMode
from moorage.storage import Storage


@frozen(eq=False)
class Contribution:
    """A class that a plugin offers under a name; `kind` is "backend", "platform", "storage" or "control mode"."""

    kind: str
    name: str
    offered: type[Any]


@frozen(eq=False)
class Tables:
    """The folded tables. `outcomes` has, for each plugin in order, what was registered and why something was not."""

    storages: dict[str, type[Storage]] = field(factory=dict)
    backends: dict[str, type[Backend]] = field(factory=dict)
    platforms: dict[str, str] = field(factory=dict)
    control_modes: dict[str, type[ControlMode]] = field(factory=dict)
    refused: dict[tuple[str, str], str] = field(factory=dict)
    outcomes: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(factory=list)


_HOOKS: Final = {
    "storage_schemes": ("storage", Storage, "schemes"),
    "backends": ("backend", Backend, "name"),
    "control_modes": ("control mode", ControlMode, "name"),
}
"""Hook -> kind, the class that each answer must derive from, the attribute that names it."""


def contributions(manager: pluggy.PluginManager) -> tuple[tuple[Contribution, ...], tuple[str, ...]]:
    """What one plugin offers, and what is wrong with the rest. An exception in a hook costs that hook's answers only."""
    offers: list[Contribution] = []
    faults: list[str] = []
    for hook, (kind, base, attribute) in _HOOKS.items():
        try:
            classes = [cls for answer in getattr(manager.hook, hook)() for cls in answer or ()]
        except Exception:  # noqa: BLE001 - a hook may raise anything
            faults.append(f"hook '{hook}' failed: {traceback.format_exc().rstrip()}")
            continue
        for cls in classes:
            fault = _fault(cls, base, attribute)
            if fault:
                faults.append(f"hook '{hook}': {fault}")
            else:
                offers += _named(kind, cls, attribute)
    return tuple(offers), tuple(faults)


def _fault(cls: object, base: type, attribute: str) -> str:
    if not isinstance(cls, type) or not issubclass(cls, base):
        return f"{cls!r} is not a subclass of moorage's {base.__name__}"
    missing = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    if inspect.isabstract(cls):
        return f"class {cls.__name__} does not implement {missing}"
    if not all(isinstance(name, str) and name for name in _names(cls, attribute) or [None]):
        return f"class {cls.__name__} must set '{attribute}' to {'its URL schemes' if attribute == 'schemes' else 'its name'}"
    if isinstance(getattr(cls, "platforms", ()), str):
        return f"class {cls.__name__}: 'platforms' must be a sequence of names, not one string"
    return ""


def _names(cls: type, attribute: str) -> Sequence[object]:
    value = getattr(cls, attribute, None)
    if attribute == "schemes" and not isinstance(value, str):
        return list(value or ())
    return [] if attribute == "schemes" else [value]


def _named(kind: str, cls: type[Any], attribute: str) -> Iterable[Contribution]:
    for name in _names(cls, attribute):
        yield Contribution(kind, str(name), cls)
    for platform in getattr(cls, "platforms", ()) if kind == "backend" else ():
        yield Contribution("platform", platform, cls)


def tables(plugins: Sequence[tuple[PluginInfo, bool, Sequence[Contribution]]]) -> Tables:
    """Give each name to its only offerer.

    Of several offerers the first built-in one has it; if none is built in, nobody has it, so that the order in which plugins
    were installed or listed never decides.
    """
    claims: dict[tuple[str, str], dict[int, type[Any]]] = defaultdict(dict)
    clashing: set[tuple[int, str, str]] = set()
    for index, (_, _, offers) in enumerate(plugins):
        for offer in offers:
            key = (offer.kind, offer.name)
            if claims[key].setdefault(index, offer.offered) is not offer.offered:
                clashing.add((index, *key))
    folded = Tables()
    registered: list[list[str]] = [[] for _ in plugins]
    refusals: list[list[str]] = [[] for _ in plugins]
    for key in sorted(claims, key=lambda key: (key[0] == "platform", key)):
        owner, reason = _owner(key, claims[key], plugins, clashing)
        for index, cls in claims[key].items():
            if index != owner:
                refusals[index].append(reason)
            elif _enter(folded, key, cls):
                registered[index].append(" ".join(key))
        if owner is None:
            folded.refused[key] = reason
    folded.outcomes.extend((tuple(done), tuple(why)) for done, why in zip(registered, refusals, strict=True))
    return folded


def _owner(
    key: tuple[str, str],
    claims: dict[int, type[Any]],
    plugins: Sequence[tuple[PluginInfo, bool, Sequence[Contribution]]],
    clashing: set[tuple[int, str, str]],
) -> tuple[int | None, str]:
    """The plugin that gets a name, None for nobody; and the complaint to those that do not."""
    kind, name = key
    if len(claims) == 1:
        (only,) = claims
        clash = (only, kind, name) in clashing
        return (None, f"{kind} '{name}' is offered by two classes of {_called(plugins[only][0])}") if clash else (only, "")
    called = " and ".join(_called(plugins[index][0]) for index in claims)
    builtin = next((index for index in claims if plugins[index][1]), None)
    verdict = "none of them is used; uninstall or block all but one" if builtin is None else "the built-in one is used"
    return builtin, f"{kind} '{name}' is offered by {called}: {verdict}"


def _called(info: PluginInfo) -> str:
    return f"plugin '{info.name}' ({info.distribution or 'built in'})"


def _enter(folded: Tables, key: tuple[str, str], cls: type[Any]) -> bool:
    """Write one name into its table; a platform only counts if its backend is in."""
    kind, name = key
    if kind == "platform":
        if folded.backends.get(cls.name) is not cls:
            return False
        folded.platforms[name] = cls.name
        return True
    tables: dict[str, dict[str, Any]] = {
        "backend": folded.backends,
        "storage": folded.storages,
        "control mode": folded.control_modes,
    }
    tables[kind][name] = cls
    return True
