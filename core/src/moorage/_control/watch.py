"""Which changes of the repositories are acted upon, and when: pure decisions over what was seen, without a clock or a file.

A model is a set of parts: each version's folder, and what all versions share. A part that differs from what was last acted
upon is *restless* until two looks, `settle` seconds apart, have seen the same of it (or have both not found it). Then

- a new version that is restless is left out, as if it were not there;
- a model with any other restless part is left alone as a whole.

A version that holds a list of check sums must match it, too, once it is at rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import evolve, field, frozen

from moorage.control import FoundModel, ModelId, Snapshot

Part = int | None
"""A version, or None for what all versions of a model share."""

SHARED: Final[Part] = None


@frozen
class Look:
    """One look at the repositories; `began` and `ended` are seconds of one clock."""

    snapshot: Snapshot
    began: float
    ended: float


class Sight(NamedTuple):
    """A fingerprint, None for what is not there, and when it was first seen without another one in between."""

    fingerprint: str | None
    since: float


class Check(NamedTuple):
    """The files of a version that are to be compared with their list of check sums."""

    model: ModelId
    version: int
    fingerprint: str


@frozen
class Known:
    """What was last acted upon of a model. `fingerprint` is empty while some of it was left out."""

    repository: str
    fingerprint: str
    parts: Mapping[Part, str]

    def is_still(self, found: FoundModel) -> bool:
        return self.fingerprint == found.fingerprint and self.repository == found.repository


@frozen
class Memory:
    """What is kept between two looks: `known` models, and the `sights` of parts that are not as they are known."""

    known: Mapping[ModelId, Known] = field(factory=dict)
    sights: Mapping[ModelId, Mapping[Part, Sight]] = field(factory=dict)


@frozen
class Decision:
    """What is to be done after a look, and what to keep for the next one.

    `wanted` maps each model that is to be loaded to the versions to leave out, `gone` are to be unloaded, `checks` to be made.
    `due` is the time at which another look can tell that something has come to rest.
    """

    memory: Memory
    wanted: Mapping[ModelId, frozenset[int]] = field(factory=dict)
    gone: tuple[ModelId, ...] = ()
    checks: tuple[Check, ...] = ()
    due: float | None = None

    def next_look(self, now: float, poll: float) -> float:
        """When to look again."""
        return now + poll if self.due is None else min(now + poll, self.due)


def decide(memory: Memory, look: Look, settle: float, checked: Mapping[Check, bool]) -> Decision:
    """What a look means. `checked` holds the checks that were made, with their results.

    Of models whose repository could not be read nothing is concluded.
    """
    models = look.snapshot.models
    changed = [
        (known, found)
        for model, found in models.items()
        if (known := memory.known.get(model)) is None or not known.is_still(found) or model in memory.sights
    ]
    absent = [(model, known) for model, known in memory.known.items() if model not in models]
    if not changed and not absent and not memory.sights:
        return Decision(memory)
    views: dict[ModelId, _View] = {}
    for known, found in changed:
        if known is None or known.repository not in look.snapshot.unreadable:
            views[found.id] = _view(found.id, known, found, memory.sights.get(found.id, {}), look)
    for model, known in absent:
        if known.repository not in look.snapshot.unreadable:
            views[model] = _view(model, known, None, memory.sights.get(model, {}), look)
    return _decision(memory, look, views, {model: _judge(view, look, settle, checked) for model, view in views.items()})


@frozen
class _View:
    """A model that is not, or was not of late, as it is known. `now` and `before` are the fingerprints of its parts."""

    model: ModelId
    found: FoundModel | None
    now: Mapping[Part, str]
    before: Mapping[Part, str]
    sights: Mapping[Part, Sight]
    """Of the parts that differ."""
    summed: frozenset[int]


@frozen
class _Verdict:
    """`act` says that what is now there is to be taken, but for the versions `unfinished`."""

    act: bool = False
    unfinished: frozenset[int] = frozenset()
    checks: tuple[Check, ...] = ()
    due: float | None = None


def _view(model: ModelId, known: Known | None, found: FoundModel | None, seen: Mapping[Part, Sight], look: Look) -> _View:
    parts = found.parts() if found is not None else None
    now: dict[Part, str] = {SHARED: parts.shared} if parts else {}
    now |= dict[Part, str](parts.versions.items()) if parts else {}
    before = known.parts if known is not None else {}
    if known is not None and found is not None and known.repository != found.repository:
        before = dict.fromkeys(before, "")
    sights = {}
    for part in now.keys() | before.keys():
        if now.get(part) != before.get(part):
            sight = seen.get(part)
            same = sight is not None and sight.fingerprint == now.get(part)
            sights[part] = sight if sight is not None and same else Sight(now.get(part), look.ended)
    return _View(model, found, now, before, sights, parts.summed if parts else frozenset())


def _judge(view: _View, look: Look, settle: float, checked: Mapping[Check, bool]) -> _Verdict:
    times = {part: sight.since + settle for part, sight in view.sights.items()} if settle > 0 else {}
    restless = {part: due for part, due in times.items() if look.began < due}
    ripe = [version for version in view.summed if version in view.sights and version not in restless]
    checks = [Check(view.model, version, view.now[version]) for version in ripe]
    held = restless.keys() | {check.version for check in checks if not checked.get(check)}
    unfinished = frozenset(part for part in held if part is not None and part not in view.before)
    versions = view.now.keys() - {SHARED}
    waits = held > unfinished or (bool(unfinished) and unfinished >= versions)
    return _Verdict(
        act=not waits and bool(view.sights.keys() - unfinished),
        unfinished=unfinished,
        checks=tuple(check for check in checks if check not in checked),
        due=min(restless.values(), default=None),
    )


def _decision(memory: Memory, look: Look, views: Mapping[ModelId, _View], verdicts: Mapping[ModelId, _Verdict]) -> Decision:
    known = dict(memory.known)
    sights = {model: seen for model, seen in memory.sights.items() if model in known or model in look.snapshot.models}
    wanted: dict[ModelId, frozenset[int]] = {}
    gone = []
    for model, view in views.items():
        verdict = verdicts[model]
        pending = view.sights
        if verdict.act and view.found is None:
            gone.append(model)
            del known[model]
            pending = {}
        elif verdict.act:
            wanted[model] = verdict.unfinished
            known[model] = _taken(view, verdict.unfinished)
            pending = {part: sight for part, sight in view.sights.items() if part in verdict.unfinished}
        elif not pending and view.found is not None:
            known[model] = evolve(known[model], fingerprint=view.found.fingerprint)
        if pending:
            sights[model] = pending
        else:
            sights.pop(model, None)
    return Decision(
        Memory(known, sights),
        wanted,
        tuple(sorted(gone)),
        tuple(check for verdict in verdicts.values() for check in verdict.checks),
        min((verdict.due for verdict in verdicts.values() if verdict.due is not None), default=None),
    )


def _taken(view: _View, unfinished: frozenset[int]) -> Known:
    if view.found is None:
        raise AssertionError("a model that is gone cannot be taken")
    parts = {part: fingerprint for part, fingerprint in view.now.items() if part not in unfinished}
    if view.found.problem is not None:
        parts = {**view.before, **parts}  # it is not known what became of its versions
    return Known(view.found.repository, "" if unfinished else view.found.fingerprint, parts)
