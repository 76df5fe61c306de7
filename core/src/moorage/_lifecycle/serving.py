"""The map that requests read: which versions serve now. Immutable, replaced as a whole; readers take no lock.

How a version is drained without one: a request first puts its handle among those that hold the version and then looks
whether the version has been closed, in which case it takes the handle out again and looks into the new map. Who closes the
version first replaces the map, then sets `closed`, and only then looks whether anyone holds it. Whatever the order of the
two threads, either the request sees `closed` or the closer sees the handle. Single operations of a set and attribute writes
are atomic and ordered in CPython, which is all that this needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Final, Generic, Self, TypeVar

from attrs import frozen

from moorage.control import ModelId
from moorage.errors import MoorageError, NotFound, RequestError, Unavailable
from moorage.types import LATEST

S = TypeVar("S")


class Handle(Generic[S]):
    """A version that a request holds: it stays loaded until `release`, from any thread, once or more."""

    __slots__ = ("_slot", "servable")

    def __init__(self, slot: Slot[S]) -> None:
        self._slot = slot
        self.servable: Final = slot.servable

    def release(self) -> None:
        slot = self._slot
        slot.held.discard(self)
        if slot.closed:
            slot.report_empty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.release()


class Slot(Generic[S]):
    """One loaded version and the handles that requests hold on it."""

    __slots__ = ("_on_empty", "closed", "held", "servable")

    def __init__(self, servable: S) -> None:
        self.servable: Final = servable
        self.held: Final[set[Handle[S]]] = set()
        self.closed = False
        self._on_empty: Callable[[], object] = _nothing

    def close(self, on_empty: Callable[[], object]) -> None:
        """Let no new request in; it must have left the map before.

        `on_empty` is called when no request holds the version any more, from any thread and perhaps more than once.
        """
        self._on_empty = on_empty
        self.closed = True
        self.report_empty()

    def report_empty(self) -> None:
        if not self.held:
            self._on_empty()


def _nothing() -> None:
    return None


@frozen(eq=False)
class _Table(Generic[S]):
    """What serves, by name.

    `routes` maps a name as a request gives it to its versions, LATEST among them; a name that means two models is left out.
    """

    routes: Mapping[str, Mapping[int, Slot[S]]]
    models: Mapping[str, Mapping[ModelId, Mapping[int, Slot[S]]]]


class ServingMap(Generic[S]):
    """Which version of which model answers requests. Read from any thread, written by one.

    A model is addressed as NAME, or NAMESPACE::NAME where namespaces are used; a bare name must mean one serving model.
    """

    def __init__(self) -> None:
        self._table: _Table[S] = _Table({}, {})
        self._known: dict[str, Mapping[ModelId, Mapping[int, str]]] = {}

    def acquire(self, name: str, version: int = LATEST) -> Handle[S]:
        """Hold a version for a request.

        Raises NotFound (unknown model or version, or no version serves and none was asked for), Unavailable (that version is
        known but does not serve now) or RequestError (the name means models of several namespaces).
        """
        while True:
            versions = self._table.routes.get(name)
            slot = versions.get(version) if versions is not None else None
            if slot is None:
                raise self._refusal(name, version)
            handle = Handle(slot)
            slot.held.add(handle)
            if not slot.closed:
                return handle
            handle.release()

    def get(self, name: str, version: int = LATEST) -> S:
        """Look at a version without holding it: for what its configuration and metadata say. Raises as `acquire`."""
        versions = self._table.routes.get(name, {})
        slot = versions.get(version)
        if slot is None:
            raise self._refusal(name, version)
        return slot.servable

    def versions(self, name: str) -> Mapping[int, S]:
        """The versions of a model that serve, ascending. Raises as `acquire`."""
        slots = self._table.routes.get(name)
        if slots is None:
            raise self._refusal(name, LATEST)
        return {version: slots[version].servable for version in sorted(slots) if version != LATEST}

    def models(self) -> dict[ModelId, Mapping[int, S]]:
        """All that serves now."""
        named = self._table.models
        return {
            model_id: {version: slots[version].servable for version in sorted(slots)}
            for models in named.values()
            for model_id, slots in models.items()
        }

    def busy(self) -> frozenset[ModelId]:
        """The models that requests hold now."""
        named = self._table.models
        return frozenset(
            model_id
            for models in named.values()
            for model_id, slots in models.items()
            if any(slot.held for slot in slots.values())
        )

    def publish(self, model_id: ModelId, slots: Mapping[int, Slot[S]]) -> None:
        """Have exactly these versions of a model serve, none if empty: one replacement of the whole map."""
        old = self._table
        named = {**old.models.get(model_id.name, {}), model_id: MappingProxyType(dict(slots))}
        if not slots:
            del named[model_id]
        models = {**old.models, model_id.name: MappingProxyType(named)}
        routes = {**old.routes, str(model_id): _route(slots), model_id.name: _route(_only(named))}
        if not named:
            del models[model_id.name]
        self._table = _Table({name: route for name, route in routes.items() if route}, models)

    def describe(self, model_id: ModelId, idle: Mapping[int, str]) -> None:
        """Tell which versions of a model are known but do not serve, and why: for the answer to who asks for one."""
        self._known[model_id.name] = {**self._known.get(model_id.name, {}), model_id: dict(idle)}

    def _refusal(self, name: str, version: int) -> MoorageError:
        models = _bare(name, self._table.models)
        if len(models) > 1:
            spaces = ", ".join(f"'{model_id.namespace}'" for model_id in sorted(models))
            example = f"ask for '{max(models)}', for instance"
            return RequestError(f"model name '{name}' is ambiguous: it is served from {spaces}; {example}")
        known = [versions for versions in _bare(name, self._known).values() if models or versions]
        return _missing(name, version, serving=bool(models), idle={v: why for idle in known for v, why in idle.items()})


V = TypeVar("V")


def _bare(name: str, models: Mapping[str, Mapping[ModelId, Mapping[int, V]]]) -> dict[ModelId, Mapping[int, V]]:
    """The models that a request's name, with or without namespace, can mean."""
    found = models.get(name) or models.get(name.rpartition("::")[2], {})
    return {model_id: versions for model_id, versions in found.items() if name in {model_id.name, str(model_id)}}


def _only(models: Mapping[ModelId, Mapping[int, Slot[S]]]) -> Mapping[int, Slot[S]]:
    """The versions under a bare name: those of the one model that has it."""
    return next(iter(models.values())) if len(models) == 1 else {}


def _route(slots: Mapping[int, Slot[S]]) -> Mapping[int, Slot[S]]:
    return MappingProxyType({**slots, LATEST: slots[max(slots)]} if slots else {})


def _missing(name: str, version: int, *, serving: bool, idle: Mapping[int, str]) -> MoorageError:
    if version in idle:
        return Unavailable(f"model '{name}' version {version} does not serve requests now: {idle[version]}")
    if version == LATEST and idle:
        states = "; ".join(f"version {number}: {why}" for number, why in sorted(idle.items()))
        return NotFound(f"model '{name}' has no version that serves requests ({states})")
    if serving or idle:
        return NotFound(f"model '{name}' has no version {version}")
    return NotFound(f"model '{name}' is not loaded; the repository index lists what there is")
